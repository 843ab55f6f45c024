"""Where ``scripts/real`` puts the real Gemma 3 270M (pretrained, Q4_K_M), and the dense model that it stands for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.model import Model, assemble
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.kinds import KINDS, numbers
from langchain_gemma_jax.models.recipes import choose_recipe

FILE = Path(__file__).parents[2] / "build" / "real" / "gemma-3-270m-Q4_K_M.gguf"


def dequantised(model: Model) -> Model:
    """The dense float32 model that a packed one stands for."""
    recipe = choose_recipe("float32")

    def dense(path, spec):
        at = model.params
        for step in path:
            at = at[step]
        found = _numbers(at)
        return jax.device_put(np.ascontiguousarray(found.T if spec.transposed else found), model.device)

    specs = walk(abstract(model.config, "float32", recipe.layout))
    params = assemble((path, dense(path, spec)) for path, spec in specs)
    return replace(model, params=params, recipe=recipe, name="dequantised", read_from=None)


def _numbers(weight):
    if isinstance(weight, Stacked):
        return np.concatenate([_numbers(each) for each in weight.weights])
    if isinstance(weight, BlockMatrix):
        return numbers(KINDS[weight.kind], tuple(np.asarray(part) for part in weight.parts))
    return np.asarray(weight)
