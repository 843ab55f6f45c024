"""Weights that are read from files, and freed again if the files changed meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.seams.params import Params, leaves


def read_unchanged(read: Callable[[], Params], files: Unchanged) -> Params:
    """The weights, if the files are now what they were before."""
    params = read()
    try:
        files.check()
    except BaseException:
        for array in leaves(params):
            array.delete()
        raise
    return params
