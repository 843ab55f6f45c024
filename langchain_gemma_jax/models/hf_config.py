"""A Hugging Face ``config.json`` as a ``ModelConfig``.

Published configs leave out what transformers takes as a default, and each generation has its own
defaults, so each has its own reader here. A value that changes the mathematics and is not
implemented is an error; it is never read past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar, cast

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.config import LayerConfig, ModelConfig, MoeConfig, PerLayerInputConfig, Rope

Raw: TypeAlias = Mapping[str, object]
T = TypeVar("T", bound="int | float | bool | str")

LOCAL, GLOBAL = "sliding_attention", "full_attention"
LOCAL_THETA, GLOBAL_THETA = 10_000.0, 1_000_000.0


def config_from_hf(raw: Raw, location: str) -> ModelConfig:
    """Read the parsed ``config.json``; ``location`` is named in errors.

    A multimodal config gives its text tower.

        >>> config_from_hf({"model_type": "gemma3_text", "num_hidden_layers": 26}, "config.json").generation
        'gemma3'
    """
    if "quantization_config" in raw:
        raise UnsupportedModelError(
            f"{location}: expected plain weights, found a quantization_config. Use the unquantised checkpoint."
        )
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise ConfigError(f"{location}: expected a model_type, found {model_type!r}.")
    if model_type in _MULTIMODAL:
        # Without a text_config every field of the text tower has its default.
        text = _Fields(raw, {}, location).table("text_config")
        return _READERS[_MULTIMODAL[model_type]](_Fields(text, outer=raw, location=f"{location} (text_config)"))
    if model_type in _READERS:
        return _READERS[model_type](_Fields(raw, outer={}, location=location))
    if model_type.startswith("gemma3n"):
        raise UnsupportedModelError(
            f"{location}: Gemma 3n is not supported (its AltUp and Laurel blocks are not implemented). "
            "Use a Gemma 4 E2B or E4B checkpoint: the same sizes, one generation later."
        )
    known = ", ".join(sorted({*_READERS, *_MULTIMODAL}))
    raise UnsupportedModelError(f"{location}: expected a model_type of {known}, found {model_type!r}.")


class _Fields:
    """Typed look-ups in one config, with errors that say where."""

    def __init__(self, raw: Raw, outer: Raw, location: str) -> None:
        self.raw, self.outer, self.location = raw, outer, location

    def get(self, name: str, default: T) -> T:
        """The value of ``name``, of the default's type; null and absent give the default."""
        value = self.raw.get(name)
        if value is None:
            return default
        wanted = type(default)
        if wanted is float and type(value) is int:
            return cast("T", float(value))
        if type(value) is not wanted:
            raise ConfigError(f"{self.location}: expected {name} to be {wanted.__name__}, found {value!r}.")
        return value

    def size(self, name: str, default: int) -> int:
        """Like ``get``, for counts and widths: at least 1."""
        value = self.get(name, default)
        if value < 1:
            raise ConfigError(f"{self.location}: expected {name} to be at least 1, found {value}.")
        return value

    def optional_float(self, name: str, default: float | None) -> float | None:
        if name in self.raw and self.raw[name] is None:
            return None
        if name not in self.raw:
            return default
        value = self.get(name, 0.0)
        if not value > 0:
            raise ConfigError(f"{self.location}: expected {name} to be positive or null, found {value}.")
        return value

    def table(self, name: str) -> Raw:
        value = self.raw.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise ConfigError(f"{self.location}: expected {name} to be an object, found {value!r}.")
        return cast("Raw", value)

    def refuse(self, name: str, why: str, *harmless: object) -> None:
        """Stop at a setting that changes the mathematics and is not implemented."""
        value = self.raw.get(name)
        if value is not None and value is not False and value not in harmless:
            raise UnsupportedModelError(f"{self.location}: {name}={value!r} is not supported: {why}.")

    def layer_types(self, count: int, period: int) -> tuple[str, ...]:
        """Local and global layers; by default every ``period``-th is global."""
        value = self.raw.get("layer_types")
        if value is None:
            return tuple(GLOBAL if (i + 1) % period == 0 else LOCAL for i in range(count))
        if not isinstance(value, list | tuple) or len(value) != count or set(value) - {LOCAL, GLOBAL}:
            raise ConfigError(
                f"{self.location}: expected layer_types to list {count} times {LOCAL!r} or {GLOBAL!r}, found {value!r}."
            )
        return tuple(value)

    def token_ids(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        value = self.raw.get(name, self.outer.get(name))
        if value is None:
            return default
        ids = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not all(type(i) is int and i >= 0 for i in ids):
            raise ConfigError(f"{self.location}: expected {name} to be a token id or a list of them, found {value!r}.")
        return cast("tuple[int, ...]", ids)

    def shared(self) -> dict[str, object]:
        """The fields of ``ModelConfig`` that every generation reads alike."""
        activation = self.raw.get("hidden_activation") or self.raw.get("hidden_act") or "gelu_pytorch_tanh"
        # "gelu" is how Gemma 1's first configs spelled the tanh approximation that it was trained with.
        if activation not in ("gelu_pytorch_tanh", "gelu"):
            raise UnsupportedModelError(
                f"{self.location}: expected the activation gelu_pytorch_tanh, found {activation!r}."
            )
        self.refuse("attention_bias", "Gemma's projections have no biases")
        self.refuse("use_bidirectional_attention", "text is read left to right", "vision")
        tied = self.raw.get("tie_word_embeddings", self.outer.get("tie_word_embeddings"))
        return {
            "tied_head": tied is not False,
            "bos_id": self.token_ids("bos_token_id", (2,))[0],
            "eos_ids": self.token_ids("eos_token_id", (1,)),
            "pad_id": self.token_ids("pad_token_id", (0,))[0],
        }


def _gemma(f: _Fields) -> ModelConfig:
    head_dim = f.size("head_dim", 256)
    layer = LayerConfig(
        kv_heads=f.size("num_key_value_heads", 16),
        head_dim=head_dim,
        ffw_width=f.size("intermediate_size", 24576),
        rope=_one_rope(f),
    )
    return _checked(
        f,
        ModelConfig(
            generation="gemma",
            vocab_size=f.size("vocab_size", 256000),
            width=f.size("hidden_size", 3072),
            heads=f.size("num_attention_heads", 16),
            layers=(layer,) * f.size("num_hidden_layers", 28),
            max_context=f.size("max_position_embeddings", 8192),
            norm_eps=f.get("rms_norm_eps", 1e-6),
            attention_scale=head_dim**-0.5,
            **f.shared(),  # type: ignore[arg-type]
        ),
    )


def _gemma2(f: _Fields) -> ModelConfig:
    rope = _one_rope(f)
    types = f.layer_types(f.size("num_hidden_layers", 26), period=2)
    window = f.size("sliding_window", 4096)
    layers = tuple(
        LayerConfig(
            kv_heads=f.size("num_key_value_heads", 4),
            head_dim=f.size("head_dim", 256),
            ffw_width=f.size("intermediate_size", 9216),
            rope=rope,
            window=window if kind == LOCAL else None,
        )
        for kind in types
    )
    return _checked(
        f,
        ModelConfig(
            generation="gemma2",
            vocab_size=f.size("vocab_size", 256000),
            width=f.size("hidden_size", 2304),
            heads=f.size("num_attention_heads", 8),
            layers=layers,
            max_context=f.size("max_position_embeddings", 8192),
            norm_eps=f.get("rms_norm_eps", 1e-6),
            attention_scale=float(f.size("query_pre_attn_scalar", 256)) ** -0.5,
            attention_softcap=f.optional_float("attn_logit_softcapping", 50.0),
            logits_softcap=f.optional_float("final_logit_softcapping", 30.0),
            post_norms=True,
            **f.shared(),  # type: ignore[arg-type]
        ),
    )


def _gemma3(f: _Fields) -> ModelConfig:
    f.refuse("attn_logit_softcapping", "Gemma 3 has no cap on attention scores")
    ropes = _two_ropes(f)
    period = f.size("sliding_window_pattern", f.size("_sliding_window_pattern", 6))
    types = f.layer_types(f.size("num_hidden_layers", 26), period)
    window = f.size("sliding_window", 4096)
    layers = tuple(
        LayerConfig(
            kv_heads=f.size("num_key_value_heads", 4),
            head_dim=f.size("head_dim", 256),
            ffw_width=f.size("intermediate_size", 9216),
            rope=ropes[kind],
            window=window if kind == LOCAL else None,
        )
        for kind in types
    )
    return _checked(
        f,
        ModelConfig(
            generation="gemma3",
            vocab_size=f.size("vocab_size", 262208),
            width=f.size("hidden_size", 2304),
            heads=f.size("num_attention_heads", 8),
            layers=layers,
            max_context=f.size("max_position_embeddings", 131072),
            norm_eps=f.get("rms_norm_eps", 1e-6),
            attention_scale=float(f.size("query_pre_attn_scalar", 256)) ** -0.5,
            logits_softcap=f.optional_float("final_logit_softcapping", None),
            post_norms=True,
            qk_norm=True,
            **f.shared(),  # type: ignore[arg-type]
        ),
    )


def _gemma4(f: _Fields) -> ModelConfig:
    count = f.size("num_hidden_layers", 30)
    # The last layer is global whatever the pattern says: it has to see the whole context.
    types = (*f.layer_types(count, period=6)[:-1], GLOBAL)
    ropes = _two_ropes(f, proportional_by_default=True)
    shared_from = count - f.get("num_kv_shared_layers", 0)
    if not 0 < shared_from <= count or set(types[:shared_from]) != set(types):
        raise ConfigError(
            f"{f.location}: expected the layers before the {count - shared_from} that share KV to hold one of each "
            f"kind, found {list(types[:shared_from])}."
        )
    last_owner = {kind: max(i for i in range(shared_from) if types[i] == kind) for kind in set(types)}
    window, width = f.size("sliding_window", 512), f.size("intermediate_size", 9216)
    layers = []
    for index, kind in enumerate(types):
        is_global, shares = kind == GLOBAL, index >= shared_from
        head_dim, kv_heads = _gemma4_heads(f, index, is_global=is_global)
        layers.append(
            LayerConfig(
                kv_heads=kv_heads,
                head_dim=head_dim,
                ffw_width=2 * width if shares and f.get("use_double_wide_mlp", False) else width,
                rope=ropes[kind],
                window=None if is_global else window,
                kv_from=last_owner[kind] if shares else None,
                k_eq_v=is_global and f.get("attention_k_eq_v", False),
            )
        )
    vocab_size = f.size("vocab_size", 262144)
    return _checked(
        f,
        ModelConfig(
            generation="gemma4",
            vocab_size=vocab_size,
            width=f.size("hidden_size", 2304),
            heads=f.size("num_attention_heads", 8),
            layers=tuple(layers),
            max_context=f.size("max_position_embeddings", 131072),
            norm_eps=f.get("rms_norm_eps", 1e-6),
            norm_offset=0.0,
            attention_scale=1.0,
            logits_softcap=f.optional_float("final_logit_softcapping", None),
            post_norms=True,
            qk_norm=True,
            v_norm=True,
            layer_scale=True,
            moe=_moe(f),
            per_layer_input=_per_layer_input(f, vocab_size),
            **f.shared(),  # type: ignore[arg-type]
        ),
    )


def _gemma4_heads(f: _Fields, index: int, *, is_global: bool) -> tuple[int, int]:
    """``(head_dim, kv_heads)`` of one layer: local and global layers differ.

    Published configs say so in ``global_head_dim`` and ``num_global_key_value_heads``; configs that
    transformers wrote itself list the exceptions in ``per_layer_config``.
    """
    head_dim, kv_heads = f.size("head_dim", 256), f.size("num_key_value_heads", 4)
    if "per_layer_config" in f.raw:
        override = _Fields(f.table("per_layer_config"), {}, f.location).table(str(index))
        one = _Fields(override, {}, f"{f.location} (per_layer_config of layer {index})")
        return one.size("head_dim", head_dim), one.size("num_key_value_heads", kv_heads)
    if not is_global:
        return head_dim, kv_heads
    fewer = f.size("num_global_key_value_heads", kv_heads) if f.get("attention_k_eq_v", False) else kv_heads
    return f.size("global_head_dim", 512), fewer


def _gemma4_unified(f: _Fields) -> ModelConfig:
    """The text tower of the sizes whose image and audio parts have no encoder of their own (12B)."""
    defaults = {"max_position_embeddings": 262144, "sliding_window": 1024}
    absent = {"hidden_size_per_layer_input": 0, "enable_moe_block": False}
    return _gemma4(_Fields({**defaults, **f.raw, **absent}, f.outer, f.location))


def _moe(f: _Fields) -> MoeConfig | None:
    if not f.get("enable_moe_block", False):
        return None
    moe = MoeConfig(
        experts=f.size("num_experts", 128),
        experts_per_token=f.size("top_k_experts", 8),
        ffw_width=f.size("moe_intermediate_size", 704),
    )
    if moe.experts_per_token > moe.experts:
        raise ConfigError(
            f"{f.location}: expected top_k_experts to be at most num_experts={moe.experts}, "
            f"found {moe.experts_per_token}."
        )
    return moe


def _per_layer_input(f: _Fields, vocab_size: int) -> PerLayerInputConfig | None:
    width = f.get("hidden_size_per_layer_input", 256)
    if not width:
        return None
    return PerLayerInputConfig(width=width, vocab_size=f.size("vocab_size_per_layer_input", vocab_size))


def _one_rope(f: _Fields) -> Rope:
    """Gemma 1 and 2: one base for all layers."""
    parameters = f.table("rope_parameters")
    f.refuse("rope_scaling", "this generation was trained without rope scaling")
    return _rope({"rope_theta": f.get("rope_theta", LOCAL_THETA), **parameters}, f.location)


def _two_ropes(f: _Fields, *, proportional_by_default: bool = False) -> dict[str, Rope]:
    """Gemma 3 and 4: local and global layers turn at different speeds."""
    local: dict[str, object] = {"rope_theta": f.get("rope_local_base_freq", LOCAL_THETA)}
    everywhere: dict[str, object] = {"rope_theta": f.get("rope_theta", GLOBAL_THETA), **f.table("rope_scaling")}
    parameters = f.table("rope_parameters")
    if proportional_by_default and not parameters:
        everywhere |= {"rope_type": "proportional", "partial_rotary_factor": 0.25}
    newer = _Fields(parameters, {}, f.location)
    return {
        LOCAL: _rope({**local, **newer.table(LOCAL)}, f.location),
        GLOBAL: _rope({**everywhere, **newer.table(GLOBAL)}, f.location),
    }


def _rope(parameters: Raw, location: str) -> Rope:
    f = _Fields(parameters, {}, f"{location} (rope)")
    kind = f.get("rope_type", f.get("type", "default"))
    theta, factor, share = f.get("rope_theta", 0.0), f.get("factor", 1.0), f.get("partial_rotary_factor", 1.0)
    if not (theta > 0 and factor > 0 and 0 < share <= 1):
        raise ConfigError(
            f"{f.location}: expected rope_theta > 0, factor > 0 and 0 < partial_rotary_factor <= 1, found {parameters}."
        )
    if kind == "default":
        return Rope(theta)
    if kind == "linear":
        return Rope(theta, position_scale=factor)
    if kind == "proportional":
        return Rope(theta, position_scale=factor, rotated_share=share)
    raise UnsupportedModelError(f"{f.location}: expected rope_type default, linear or proportional, found {kind!r}.")


def _checked(f: _Fields, config: ModelConfig) -> ModelConfig:
    for index, layer in enumerate(config.layers):
        if config.heads % layer.kv_heads:
            raise ConfigError(
                f"{f.location}: expected the {config.heads} attention heads to be a multiple of the key-value heads, "
                f"found {layer.kv_heads} in layer {index}."
            )
        if layer.head_dim % 2:
            raise ConfigError(f"{f.location}: expected an even head_dim, found {layer.head_dim} in layer {index}.")
    return config


_READERS: Mapping[str, Callable[[_Fields], ModelConfig]] = {
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gemma4_text": _gemma4,
    "gemma4_unified_text": _gemma4_unified,
}
_MULTIMODAL: Mapping[str, str] = {
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_unified_text",
}
