"""The default recipe, by what is known of JAX releases: the start of a measurement, and the recipe without one."""

from __future__ import annotations

import re

import jax

from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import Form, Plan

CPU_ATTENTION_PAIRS = 8  # enough for a decode step of one row or a few; a product for each pair costs compile time


def default_recipe(dtype: str, backend: str, jax_version: str = jax.__version__) -> Recipe:
    """Return a recipe without known slow cases. On GPU and TPU that is the plain one."""
    if backend != "cpu":
        return Recipe(dtype)
    old = _release(jax_version) < (0, 10)
    if dtype == "float32":  # inputs first is never slower, and up to six times faster for a few rows
        layers = embed = Plan(out_first=False)
    elif old:
        layers, embed = Plan(), Plan(few_rows=Form.EACH_ROW)
    else:  # a lone 16-bit row takes ten to twenty times as long as two
        layers = embed = Plan(one_row=Form.PAD_ROWS)
    if old and dtype != "float16":  # eight rows in less than half the time of any other form
        embed = Plan(few_rows=Form.WEIGHTS_FIRST)
    return Recipe(dtype, layers, embed, attention_pairs=CPU_ATTENTION_PAIRS)


def _release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: (0, 9, 2) for "0.9.2" and for "0.9.2.dev20260101"."""
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()
