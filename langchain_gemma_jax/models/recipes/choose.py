"""Which recipe to use: the one given, else the remembered, else the measured, else the safe one."""

from __future__ import annotations

import dataclasses
import threading

import jax

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.recipes.probe import probe
from langchain_gemma_jax.models.recipes.probe_attention import probe_attention
from langchain_gemma_jax.models.recipes.probe_between import probe_between
from langchain_gemma_jax.models.recipes.store import alone, recall, remember
from langchain_gemma_jax.models.seams.recipe import Recipe

_lock = threading.Lock()
_chosen: dict[tuple[str, str], Recipe] = {}


def choose_recipe(dtype: str, *, divided: bool = False) -> Recipe:
    """The recipe for weights of ``dtype`` on this machine; for those divided among devices, what XLA can divide.

    The first call on a machine measures (some three seconds at most) and remembers the result in the package's
    cache folder; deleting the file measures again. A measurement that ran out of time is used as far
    as it came, by the processes of the next hour too: with another recipe they would compile every program
    anew. Processes that start together measure once. To decide yourself, pass a ``Recipe``:

        load_model("google/gemma-3-1b-it", recipe=Recipe("bfloat16", layers=Plan(one_row=Form.PAD_ROWS)))
    """
    backend = jax.default_backend()
    if divided:
        return default_recipe(dtype, backend)
    with _lock:
        if (backend, dtype) not in _chosen:
            _chosen[backend, dtype] = _choose(backend, dtype)
        return _chosen[backend, dtype]


def _choose(backend: str, dtype: str) -> Recipe:
    default = default_recipe(dtype, backend)
    if backend != "cpu":  # no cliffs between these forms are known on GPU and TPU
        return default
    if (known := recall(dtype)) is None:
        with alone(dtype):
            if (known := recall(dtype)) is None:  # whoever was waited for may have measured
                ours = kernels()
                fast = ours.run and ours.variant != "portable"
                measured, complete = probe(default, with_kernels=ours.run, kernels_are_fast=fast)
                if ours.run:
                    attention, both = probe_attention(dtype, kernels_are_fast=fast)
                    between = probe_between()
                    measured = dataclasses.replace(measured, attention=attention, between=between)
                    complete = complete and both
                remember(measured, complete=complete)
                return measured
    pairs, in_loop = default.attention_pairs, default.write_in_loop
    return dataclasses.replace(known, attention_pairs=pairs, write_in_loop=in_loop)
