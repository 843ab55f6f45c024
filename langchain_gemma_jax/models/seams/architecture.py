"""What the engine asks of a kind of model: its arrays, its cache, its forward pass, and what a step of it costs.

The engine serves whatever answers these questions: ``Gemma`` (``gemma/``) is one answer, ``TorchModel`` (``torchax/``)
another. An architecture is a frozen dataclass of plain values: programs are traced with it, and both its ``repr`` and
the source of its module are parts of their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import jax

from langchain_gemma_jax.models.configuration.model_config import CacheLayout, EmbeddingConfig, ModelConfig
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder
from langchain_gemma_jax.models.seams.placement import DeviceGrid, Placement
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE

Made = TypeVar("Made")


class Architecture(ABC):
    """A kind of model of certain sizes, without its weights."""

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """How many scores there are for a next token. A tokenizer may have fewer ids."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many numbers ``forward`` gives for a token."""

    @property
    @abstractmethod
    def max_context(self) -> int:
        """The most tokens that it can have read."""

    @property
    @abstractmethod
    def eos_ids(self) -> tuple[int, ...]:
        """The ids that end a turn."""

    @property
    @abstractmethod
    def cache_layout(self) -> CacheLayout:
        """What each layer keeps of the tokens that it has read: one at least keeps something."""

    @property
    def cache_of_a_device(self) -> CacheLayout:
        """What each layer keeps on one device: all of it, unless the model is divided among several."""
        return self.cache_layout

    def at(self, where: Placement) -> Architecture:
        """Return the same model as programs for a place are traced with it."""
        return self if where.grid is None else self.among(where.grid)

    def among(self, where: DeviceGrid) -> Architecture:  # noqa: ARG002  most need no other code for it
        """Return the same model as programs for several devices are traced with it."""
        return self

    @property
    def gemma(self) -> ModelConfig | None:
        """The configuration of a Gemma. None: it is a model of another family."""
        return None

    @property
    def embeds(self) -> bool:
        """Return True if it makes vectors of whole texts. It writes none then."""
        return self.embedding_width is not None

    @property
    def embedding(self) -> EmbeddingConfig | None:
        """How a Gemma's vectors of texts are made, and what it reads before a text. None: that is not said."""
        return None

    @property
    def embedding_width(self) -> int | None:
        """How many numbers stand for a whole text. None: it reads texts to go on with them, and makes no vectors."""
        return None

    @property
    def encoders(self) -> tuple[MediaEncoder, ...]:
        """What makes soft tokens of pictures and sounds, which it reads in the place of a text's embeddings."""
        return ()

    def read_medium(
        self,
        params: Any,
        recipe: Recipe,
        encoder: int,  # which of its encoders made them
        vectors: jax.Array,  # [1, token, width] float32: the soft tokens of one medium, all of them, and padding
        start: jax.Array,  # [1] int32: tokens already in the cache
        count: jax.Array,  # [1] int32: tokens that are real
        cache: KVCache,
        keep: jax.Array,  # [1] int32: only this token's output is wanted
    ) -> tuple[jax.Array, KVCache]:
        """Read one medium: what it gives for the kept token ``[1, 1, width]``, and the cache with all of it.

        Padding may reach beyond the cache's end. Only for those architectures that have encoders.

        Raises:
            TypeError: this one has none.
        """
        del params, recipe, encoder, vectors, start, count, cache, keep
        raise TypeError(f"{type(self).__name__} reads text alone: it has no encoders")

    def embed(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,  # [row, token] int32
        count: jax.Array,  # [row] int32: tokens of each text that are real; the rest is padding
    ) -> jax.Array:
        """Return the vectors of whole texts ``[row, embedding_width]``: of those architectures that have a width.

        Raises:
            TypeError: this one has none.
        """
        del params, recipe, tokens, count
        raise TypeError(f"{type(self).__name__} makes no vectors of texts: it has no embedding_width")

    @abstractmethod
    def abstract(self, recipe: Recipe) -> Any:
        """Return the tree of its parameters, with an ``ArraySpec`` in place of each array."""

    @abstractmethod
    def forward(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,  # [row, token] int32
        start: jax.Array,  # [row] int32: tokens already in the cache
        count: jax.Array,  # [row] int32: tokens of this chunk that are real; the rest is padding
        caches: tuple[KVCache, ...],  # each holds its equal share of the rows, in order
        keep: jax.Array | None,  # [row] int32: only this token's output is wanted
    ) -> tuple[jax.Array, tuple[KVCache, ...]]:
        """Read a chunk: what it gives for each token ``[row, token, width]``, and the caches with the chunk in them.

        Padding changes no result and is not seen later. With ``keep``: ``[row, 1, width]``.
        """

    @abstractmethod
    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array) -> jax.Array:
        """Return the scores of the next token for what ``forward`` gave: float32 ``[..., vocab_size]``."""

    def with_scores(
        self, params: Any, recipe: Recipe, hidden: jax.Array, work: Callable[..., Made], *given: Any
    ) -> Made:
        """Return what ``work(scores, share, *given)`` makes of the scores of the next token.

        Of a model that is divided among devices each works with its own share of them, and all make the same.
        """
        return work(self.logits(params, recipe, hidden), EVERY_SCORE, *given)

    @abstractmethod
    def numbers_at_work(self, tokens: int, context: int) -> int:
        """Return about how many float32 numbers are alive at once while a chunk of so many tokens sees a context."""
