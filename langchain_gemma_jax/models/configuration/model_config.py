"""A Gemma's architecture as plain frozen values: no arrays, no JAX.

One ``ModelConfig`` describes every generation. A generation is not a class and not a branch in the
forward pass: it is a choice of these fields (``hf_config.py`` reads them from a ``config.json``,
``catalog.py`` spells out the published sizes).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Rope:
    """The rotary position embedding of a layer's queries and keys."""

    theta: float
    position_scale: float = 1.0  # positions are divided by it: "linear" scaling, Gemma 3 4B and up
    rotated_share: float = 1.0  # the share of a head that is rotated: "proportional" rope, Gemma 4 global layers


@dataclass(frozen=True)
class LayerConfig:
    """One layer's sizes. Layers of one model differ, so each has all of its sizes."""

    kv_heads: int
    head_dim: int
    ffw_width: int
    rope: Rope
    window: int | None = None  # tokens a local layer sees, the current one included; None: a global layer
    kv_from: int | None = None  # the earlier layer whose KV it reads, as it owns none; None: it owns its KV
    k_eq_v: bool = False  # the value is the key before its norm and rope; there is no value projection

    @property
    def is_local(self) -> bool:
        return self.window is not None

    @property
    def owns_kv(self) -> bool:
        return self.kv_from is None


SCALE_BYTES = 4  # of the scale behind the numbers of a token's head that are rounded


@dataclass(frozen=True)
class CacheLayer:
    """The keys and values that one layer keeps of each token."""

    kv_heads: int
    head_dim: int
    window: int | None = None  # the last tokens that it attends to, the current one included; None: all
    rounded: bool = False  # turned and rounded to eight bits, see ``models/seams/kv_rounding.py``

    @property
    def width(self) -> int:
        """The numbers of a token's head as they are stored, its scale included."""
        return self.head_dim + SCALE_BYTES if self.rounded else self.head_dim

    def stored_dtype(self, dtype: str) -> str:
        """Return the dtype in which they are stored, where those that are not rounded have ``dtype``."""
        return "int8" if self.rounded else dtype


CacheLayout: TypeAlias = tuple[CacheLayer | None, ...]
"""One entry per layer; None where a layer reads another's keys and values."""


@dataclass(frozen=True)
class MoeConfig:
    """A mixture of experts in addition to the dense feed-forward (Gemma 4 26B-A4B)."""

    experts: int
    experts_per_token: int
    ffw_width: int


@dataclass(frozen=True)
class PerLayerInputConfig:
    """A second embedding, a slice of it added in every layer (Gemma 4 E2B and E4B)."""

    width: int
    vocab_size: int  # 0: it has no table, and is made of the first one alone (EmbeddingGemma 2)


@dataclass(frozen=True)
class EmbeddingConfig:
    """The steps from a text's tokens to its embedding (EmbeddingGemma).

    The mean over the tokens is multiplied by the ``dense`` matrices, one after the other.
    """

    dense: tuple[tuple[int, int], ...] = ()  # (outputs, inputs) of each
    normed: bool = True  # the vector is scaled to the length 1
    inside: bool = False  # the first matrix is among the Gemma's own tensors (EmbeddingGemma 2)
    prompts: tuple[tuple[str, str], ...] = ()  # task name and the prompt that is put before a text

    def width(self, of_tokens: int) -> int:
        """Return the number of values in a text's embedding, where a token's output has ``of_tokens``."""
        return self.dense[-1][0] if self.dense else of_tokens


@dataclass(frozen=True)
class DraftingConfig:
    """The parts of a drafter that connect it to the model that it drafts for, its target (Gemma 4's assistants).

    Its layers read the target's keys and values: ``kv_from`` of each is one of the *target's* layers.
    """

    target_width: int
    centroids: int = 0  # groups of tokens, of which a few are scored; 0: every token is
    chosen: int = 0  # groups whose tokens are scored


@dataclass(frozen=True)
class ModelConfig:
    """A Gemma model's architecture.

    ``config.layers`` has one entry a layer; everything else holds for the whole model.
    """

    generation: str  # "gemma", "gemma2", "gemma3" and the like: for names and messages, never for branches
    vocab_size: int
    width: int  # of the residual stream
    heads: int
    layers: tuple[LayerConfig, ...]
    max_context: int
    attention_scale: float
    norm_eps: float = 1e-6
    norm_offset: float = 1.0  # stored norm weights w act as (offset + w): 1 before Gemma 4, 0 since
    post_norms: bool = False  # a norm after attention and after feed-forward too ("sandwich"), since Gemma 2
    qk_norm: bool = False  # since Gemma 3
    v_norm: bool = False  # without a scale, since Gemma 4
    layer_scale: bool = False  # each layer's output times one stored number, since Gemma 4
    attention_softcap: float | None = None
    logits_softcap: float | None = None
    tied_head: bool = True  # the output matrix is the embedding
    moe: MoeConfig | None = None
    per_layer_input: PerLayerInputConfig | None = None
    embedding: EmbeddingConfig | None = None  # not None: a text is read at once, and attention is bidirectional
    drafting: DraftingConfig | None = None  # not None: it drafts for another model, and answers nothing by itself
    bos_id: int = 2
    eos_ids: tuple[int, ...] = (1,)
    pad_id: int = 0

    def replace(self, **changes: object) -> ModelConfig:
        """Return a copy of the configuration with some fields changed."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

    @property
    def cache_layout(self) -> CacheLayout:
        """The cache of each layer; None for a layer that reads another's."""
        return tuple(
            CacheLayer(layer.kv_heads, layer.head_dim, layer.window) if layer.owns_kv else None for layer in self.layers
        )

    @property
    def kv_layers(self) -> tuple[int, ...]:
        """The layers that own KV, in order."""
        return tuple(i for i, layer in enumerate(self.layers) if layer.owns_kv)
