"""A model before its weights are read: all that is known of it by then."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.tokenizer import Tokenizer


@dataclass(frozen=True)
class LoadPlan:
    """A model before its weights are read."""

    name: str
    architecture: Architecture
    recipe: Recipe
    tokenizer: Tokenizer
    placement: Placement
    files: Unchanged  # what it is read from
    chosen: str = ""  # why it is on so many devices
