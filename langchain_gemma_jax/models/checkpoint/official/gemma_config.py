"""The ``ModelConfig`` of a model of the official library, read from its ``config`` by attribute names.

The library itself is never imported here: that takes 15 seconds, and the caller has imported it already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.official.gemma_shapes import with_vocabulary
from langchain_gemma_jax.models.configuration.model_config import (
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)

_T = TypeVar("_T")


def read_architecture(model: object) -> ModelConfig:
    """Return the architecture of ``model``, an instance of one of the library's transformers.

    Its ``max_context`` is 0 and its special tokens are the defaults, because the library's configuration
    has neither. ``like_published`` fills them in.

    Raises:
        UnsupportedModelError: a Gemma 3n, or an option of the library that this package does not have.
        ConfigError: ``model`` is not one of the library's Gemma transformers.
    """
    return _read(_Official(getattr(model, "config", None), f"{type(model).__name__}.config"))


def like_published(config: ModelConfig, published: Iterable[ModelConfig]) -> ModelConfig:
    """Return ``config`` with the context length and the special tokens of the matching published model.

    That is the first one of the same architecture, for any size of the vocabulary. For an unpublished
    architecture it is the model of the same generation with the shortest context.
    """
    generation = [known for known in published if known.generation == config.generation]
    same = [known for known in generation if same_architecture(known, config)]
    model = same[0] if same else min(generation, key=lambda known: known.max_context)
    return config.replace(
        max_context=model.max_context, bos_id=model.bos_id, eos_ids=model.eos_ids, pad_id=model.pad_id
    )


def same_architecture(known: ModelConfig, config: ModelConfig) -> bool:
    """Return True if two configurations are equal but for vocabulary size, context length and special tokens."""
    return config == with_vocabulary(known, config.vocab_size).replace(
        max_context=config.max_context,
        bos_id=config.bos_id,
        eos_ids=config.eos_ids,
        pad_id=config.pad_id,
    )


def _read(official: _Official) -> ModelConfig:
    if official.has("use_altup"):
        raise UnsupportedModelError(f"{official.where} is a Gemma 3n, which is not supported.")
    is_gemma4 = official.has("k_eq_v_global")
    sandwich = official.flag("use_post_attn_norm")
    if official.flag("use_post_ffw_norm") != sandwich:
        raise UnsupportedModelError(
            f"{official.where}: expected a norm after both attention and feed-forward or after neither, found "
            f"use_post_attn_norm={sandwich}, use_post_ffw_norm={not sandwich}."
        )
    config = ModelConfig(
        generation="gemma2" if sandwich else "gemma",
        vocab_size=official.integer("num_embed"),
        width=official.integer("embed_dim"),
        heads=official.integer("num_heads"),
        layers=_gemma4_layers(official) if is_gemma4 else _layers(official),
        max_context=0,
        attention_scale=1.0 if is_gemma4 else official.attention_scale(),
        post_norms=sandwich,
        attention_softcap=official.optional("attn_logits_soft_cap"),
        logits_softcap=official.optional("final_logit_softcap"),
    )
    if is_gemma4:
        return _with_gemma4_parts(official, config)
    return config.replace(generation="gemma3", qk_norm=True) if official.flag("use_qk_norm") else config


def _with_gemma4_parts(official: _Official, config: ModelConfig) -> ModelConfig:
    if not official.flag("qk_norm_with_scale"):
        raise UnsupportedModelError(f"{official.where}.qk_norm_with_scale: expected True, as in every published model.")
    moe = None
    if official.flag("enable_moe"):
        moe = MoeConfig(
            experts=official.integer("num_experts"),
            experts_per_token=official.integer("top_k_experts"),
            ffw_width=official.integer("expert_dim"),
        )
    ple = official.integer("per_layer_input_dim")
    return config.replace(
        generation="gemma4",
        norm_offset=0.0,
        qk_norm=True,
        v_norm=True,
        layer_scale=True,
        moe=moe,
        per_layer_input=PerLayerInputConfig(width=ple, vocab_size=config.vocab_size) if ple else None,
    )


def _layers(official: _Official) -> tuple[LayerConfig, ...]:
    """Return the layers of a model before Gemma 4: they differ only in their attention."""
    return tuple(
        LayerConfig(
            kv_heads=official.integer("num_kv_heads"),
            head_dim=official.integer("head_dim"),
            ffw_width=official.integer("hidden_dim"),
            rope=official.rope("local" if is_local else "global"),
            window=official.integer("sliding_window_size") if is_local else None,
        )
        for is_local in official.local_layers()
    )


def _gemma4_layers(official: _Official) -> tuple[LayerConfig, ...]:
    local_layers = official.local_layers()
    kv_from = _shared_kv(official, local_layers)
    ffw = official.integer("moe_dense_hidden_dim" if official.flag("enable_moe") else "hidden_dim")
    ffw_of_sharing = official.optional_integer("override_kv_shared_ffw_hidden") or ffw
    kv_heads, head_dim = official.integer("num_kv_heads"), official.integer("head_dim")
    local = LayerConfig(
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffw_width=ffw,
        rope=official.rope("local"),
        window=official.integer("sliding_window_size"),
    )
    everywhere = LayerConfig(
        kv_heads=official.optional_integer("num_global_kv_heads") or kv_heads,
        head_dim=official.optional_integer("global_key_size") or head_dim,
        ffw_width=ffw,
        rope=official.rope("global"),
        k_eq_v=official.flag("k_eq_v_global"),
    )
    return tuple(
        replace(local if is_local else everywhere, kv_from=shared, ffw_width=ffw if shared is None else ffw_of_sharing)
        for is_local, shared in zip(local_layers, kv_from, strict=True)
    )


def _shared_kv(official: _Official, local_layers: Sequence[bool]) -> list[int | None]:
    """Return the layer whose KV each layer reads: for the last ones, one of the last two owners, local or global."""
    sharing, count = official.get("kv_cache_sharing_config"), len(local_layers)
    if sharing is None:
        return [None] * count
    shares = _Official(sharing, f"{official.where}.kv_cache_sharing_config")
    owners = int(count - shares.number("frac_shared_layers") * count)
    source = {
        True: owners - 2 if shares.flag("share_local") else None,
        False: owners - 1 if shares.flag("share_global") else None,
    }
    return [None if index < owners else source[is_local] for index, is_local in enumerate(local_layers)]


class _Official:
    """A configuration object of the library: its fields by name, their types checked."""

    def __init__(self, config: object, where: str) -> None:
        self._config, self.where = config, where

    def has(self, name: str) -> bool:
        return hasattr(self._config, name)

    def get(self, name: str) -> object:
        if not self.has(name):
            raise ConfigError(
                f"{self.where}.{name}: expected a field of the official library's configuration, found none. "
                "Pass a Gemma transformer of the `gemma` package, such as gm.nn.Gemma3_1B(), or pass config= too."
            )
        return getattr(self._config, name)

    def flag(self, name: str) -> bool:
        return self._typed(name, bool, "True or False")

    def integer(self, name: str) -> int:
        return self._typed(name, int, "a whole number")

    def number(self, name: str) -> float:
        value = self.get(name)
        return float(value) if isinstance(value, int) else self._typed(name, float, "a number")

    def optional(self, name: str) -> float | None:
        return None if self.get(name) is None else self.number(name)

    def optional_integer(self, name: str) -> int | None:
        return None if self.get(name) is None else self.integer(name)

    def rope(self, kind: str) -> Rope:
        share = self.optional(f"{kind}_rope_proportion") if self.has(f"{kind}_rope_proportion") else None
        return Rope(
            theta=self.number(f"{kind}_base_frequency"),
            position_scale=self.number(f"{kind}_scale_factor"),
            rotated_share=1.0 if share is None else share,
        )

    def local_layers(self) -> list[bool]:
        """Return True for each layer whose attention is local, False for the others."""
        types = self.get("attention_types")
        if not isinstance(types, Sequence):
            raise ConfigError(f"{self.where}.attention_types: expected a sequence of AttentionType, found {types!r}.")
        names = [getattr(kind, "name", str(kind)) for kind in types]
        if unknown := set(names) - {"LOCAL_SLIDING", "GLOBAL"}:
            raise UnsupportedModelError(
                f"{self.where}.attention_types: expected LOCAL_SLIDING and GLOBAL, found {', '.join(sorted(unknown))}."
            )
        return [name == "LOCAL_SLIDING" for name in names]

    def attention_scale(self) -> float:
        scale = self.get("query_pre_attn_scalar")
        if not callable(scale):
            raise ConfigError(f"{self.where}.query_pre_attn_scalar: expected a method, found {scale!r}.")
        return float(scale())

    def _typed(self, name: str, kind: type[_T], described: str) -> _T:
        value = self.get(name)
        if not isinstance(value, kind):
            raise ConfigError(f"{self.where}.{name}: expected {described}, found {value!r}.")
        return value
