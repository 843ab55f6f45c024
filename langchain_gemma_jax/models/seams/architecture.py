"""The interface between the engine and a kind of model: arrays, cache, forward pass, and the cost of a step.

The engine serves anything that implements it: ``Gemma`` (``gemma/``) and ``TorchModel`` (``torchax/``) do. An
architecture is a frozen dataclass of plain values. Programs are traced with it, and both its ``repr`` and the source of
its module are part of a program's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from langchain_gemma_jax.models.configuration.model_config import CacheLayout, EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.seams.adapters import AdaptedLayers
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder
from langchain_gemma_jax.models.seams.placement import DeviceGrid, Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE

Made = TypeVar("Made")


class Architecture(ABC):
    """A model's kind and sizes, without its weights."""

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """Number of scores for the next token. A tokenizer may have fewer ids."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of values that ``forward`` returns per token."""

    @property
    @abstractmethod
    def max_context(self) -> int:
        """The longest context, in tokens."""

    @property
    @abstractmethod
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a turn."""

    @property
    @abstractmethod
    def cache_layout(self) -> CacheLayout:
        """The cache of each layer; None for a layer without one. At least one layer has a cache."""

    @property
    def cache_of_a_device(self) -> CacheLayout:
        """The part of each layer's cache that lies on one device: all of it, unless the model is divided."""
        return self.cache_layout

    def at(self, where: Placement) -> Architecture:
        """Return the architecture with which programs for a placement are traced."""
        return self if where.grid is None else self.among(where.grid)

    def among(self, where: DeviceGrid) -> Architecture:  # noqa: ARG002  most need no other code for it
        """Return the architecture with which programs for several devices are traced."""
        return self

    @property
    def gemma(self) -> ModelConfig | None:
        """The configuration of a Gemma. None: it is a model of another family."""
        return None

    @property
    def embeds(self) -> bool:
        """True if the model embeds texts. It does not generate then."""
        return self.embedding_width is not None

    @property
    def embedding(self) -> EmbeddingConfig | None:
        """The configuration of a Gemma that embeds texts, with its prompts. None: there is none."""
        return None

    @property
    def embedding_width(self) -> int | None:
        """Number of values in the embedding of a text. None: the model generates, and embeds no texts."""
        return None

    @property
    def encoders(self) -> tuple[MediaEncoder, ...]:
        """The encoders of pictures and sounds. Their soft tokens take the place of a text's embeddings."""
        return ()

    @property
    def adapted_layers(self) -> AdaptedLayers | None:
        """The matrices that adapters may change. None: it takes no adapters."""
        return None

    def read_medium(
        self,
        params: Any,
        recipe: Recipe,
        encoder: int,  # index of the encoder that made them
        tokens: jax.Array,  # [1, token] int32: placeholders, the words that are read with the medium, and padding
        vectors: jax.Array,  # [1, token, width] float32: the soft tokens of one medium, all of them, and padding
        start: jax.Array,  # [1] int32: tokens already in the cache
        count: jax.Array,  # [1] int32: tokens that are real
        cache: KVCache,
        keep: jax.Array,  # [1] int32: only this token's output is wanted
    ) -> tuple[jax.Array, KVCache]:
        """Read one medium; return the output of the kept token ``[1, 1, width]``, and the cache with the whole medium.

        Where the encoder has ``most_words``, the words behind the soft tokens are read with it.

        Raises:
            TypeError: the architecture has no encoders.
        """
        del params, recipe, encoder, tokens, vectors, start, count, cache, keep
        raise TypeError(f"{type(self).__name__} reads text alone: it has no encoders")

    def embed(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,  # [row, token] int32
        count: jax.Array,  # [row] int32: tokens of each text that are real; the rest is padding
    ) -> jax.Array:
        """Return one vector for each text: ``[row, embedding_width]``.

        Raises:
            TypeError: the architecture has no ``embedding_width``.
        """
        del params, recipe, tokens, count
        raise TypeError(f"{type(self).__name__} makes no vectors of texts: it has no embedding_width")

    @abstractmethod
    def abstract(self, recipe: Recipe) -> Any:
        """Return the parameter tree, with an ``ArraySpec`` in place of each array."""

    @abstractmethod
    def forward(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,  # [row, token] int32
        start: jax.Array,  # [row] int32: tokens already in the cache
        count: jax.Array,  # [row] int32: tokens of this chunk that are real; the rest is padding
        cache: KVCache,
        keep: jax.Array | None,  # [row] int32: only this token's output is wanted
    ) -> tuple[jax.Array, KVCache]:
        """Read a chunk; return an output for each token ``[row, token, width]``, and the cache with the chunk added.

        Padding changes no result and is not seen later. With ``keep``, the output is ``[row, 1, width]``.
        """

    @abstractmethod
    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None) -> jax.Array:
        """Return the scores of the next token for outputs of ``forward``: float32 ``[..., vocab_size]``.

        ``real``: the number of rows before the unused ones, whose scores have no meaning.
        """

    def with_scores(
        self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array, work: Callable[..., Made], *given: Any
    ) -> Made:
        """Return ``work(scores, share, *given)`` for the scores of the next token. ``real``: see ``logits``.

        Where a model is divided, each device calls ``work`` with its own share of the scores, and all return the same.
        """
        return work(self.logits(params, recipe, hidden, real), EVERY_SCORE, *given)

    @abstractmethod
    def numbers_at_work(self, tokens: int, context: int) -> int:
        """Estimate the float32 numbers alive at once while a chunk of ``tokens`` attends to a context."""
