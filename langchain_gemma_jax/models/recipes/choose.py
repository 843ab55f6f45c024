"""The choice of a recipe: the stored one, else a measured one, else the safe default."""

from __future__ import annotations

import dataclasses
import threading

import jax

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.recipes.probe import probe
from langchain_gemma_jax.models.recipes.probe_between import probe_between
from langchain_gemma_jax.models.recipes.store import alone, recall, remember
from langchain_gemma_jax.models.seams.recipe import AttentionForm, Recipe

_lock = threading.RLock()
_chosen: dict[tuple[str, str], Recipe] = {}


def choose_recipe(dtype: str, *, divided: bool = False) -> Recipe:
    """Return the recipe for weights of ``dtype`` on this machine; for divided weights, one that XLA can divide.

    The first call on a machine measures (about three seconds at most) and stores the result in the package's
    cache folder; to measure again, delete the file. A measurement that ran out of time is used as far
    as it came, also by the processes of the next hour: with another recipe they would compile every program
    again. Processes that start together measure once. To choose yourself, pass a ``Recipe``:

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
            if (known := recall(dtype)) is None:  # another process may have measured while this one waited
                ours = kernels()
                fast = ours.run and ours.variant != "portable"
                measured, complete = probe(default, with_kernels=ours.run, kernels_are_fast=fast)
                if ours.run:
                    # Kernels follow the tables of pages; XLA would gather what is in them first.
                    measured = dataclasses.replace(measured, attention=AttentionForm.KERNEL, between=probe_between())
                remember(measured, complete=complete)
                return measured
    return dataclasses.replace(known, attention_pairs=default.attention_pairs)
