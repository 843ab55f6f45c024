"""A model before its weights are read: all that is known of it by then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.chat_format import ChatFormat
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.model_media import ModelMedia


@dataclass(frozen=True)
class LoadPlan:
    """A model before its weights are read."""

    name: str
    architecture: Architecture
    recipe: Recipe
    tokenizer: Tokenizer
    placement: Placement
    files: Unchanged  # what it is read from
    chosen: str = ""  # why it is on N devices
    vocabulary: bytes = b""  # a digest of its tokenizer
    generation_defaults: Mapping[str, object] = field(default_factory=dict)  # what its authors recommend
    chat_format: ChatFormat = field(default_factory=ChatFormat)
    encoders: ModelMedia | None = None  # of pictures and sounds; None: it reads text alone
