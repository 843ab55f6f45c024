"""A Hugging Face ``config.json`` as a ``ModelConfig``.

Published configs leave out transformers' defaults, and each generation has its own defaults, so each
has its own reader here. A value that changes the mathematics and is not implemented is an error; it
is never skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import GLOBAL, LOCAL, MOST_LAYERS, Fields, Raw
from langchain_gemma_jax.models.configuration.model_config import (
    EmbeddingConfig,
    LayerConfig,
    ModelConfig,
    MoeConfig,
    PerLayerInputConfig,
    Rope,
)
from langchain_gemma_jax.models.configuration.strict_json import short


def config_from_hf(raw: Raw, location: str) -> ModelConfig:
    """Read the parsed ``config.json``; ``location`` is named in errors.

    A multimodal config gives its text tower.

        >>> config_from_hf({"model_type": "gemma3_text", "num_hidden_layers": 26}, "config.json").generation
        'gemma3'

    Raises:
        UnsupportedModelError: another architecture, or an option that is not implemented.
        ConfigError: a value that is malformed or cannot be.
    """
    for table in (raw, raw.get("text_config")):
        if isinstance(table, Mapping) and table.get("quantization_config") is not None:
            raise UnsupportedModelError(
                f"{location}: expected plain weights, found a quantization_config. Use the unquantized checkpoint."
            )
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise _unknown(model_type, location)
    if model_type in _MULTIMODAL:
        text = Fields(raw, {}, location).table("text_config")  # absent: every text field at its default
        if model_type == PREFIXED:
            text = _paligemma_text(text)
        fields = Fields(text, outer=raw, location=f"{location} (text_config)")
        kinds = _MULTIMODAL[model_type]
        text_type = fields.get("model_type", kinds[0])
        if text_type not in kinds:
            raise fields.error("model_type", " or ".join(map(repr, kinds)), text["model_type"])
        return _READERS[text_type](fields)
    if model_type in _READERS:
        return _READERS[model_type](Fields(raw, outer={}, location=location))
    raise _unknown(model_type, location)


PREFIXED = "paligemma"
"""The kind of model that reads a picture and its text in both directions."""


def _paligemma_text(text: Raw) -> Raw:
    """Return the text tower's object as Gemma 1 or 2 have it."""
    if not text:
        text = {
            "hidden_size": 2048,
            "num_hidden_layers": 18,
            "intermediate_size": 16384,
            "num_attention_heads": 8,
            "num_key_value_heads": 1,
            "vocab_size": 257152,
        }
    # It says nothing here: what is read in both directions is the beginning alone, and in every PaliGemma.
    return {name: value for name, value in text.items() if name != "use_bidirectional_attention"}


def text_tower(model_type: str, fields: Fields) -> ModelConfig:
    """Read the text tower of this ``model_type`` from its own object of a configuration."""
    return _READERS[model_type](fields)


DRAFTERS: Mapping[str, str] = {
    "gemma4_assistant": "gemma4_text",
    "gemma4_unified_assistant": "gemma4_unified_text",
}
"""The kinds of drafters, each with the kind of its text tower. See ``drafter_config.py``."""

OTHER_GEMMAS: Mapping[str, str] = {
    "gemma3n": "Gemma 3n is not supported: its AltUp and Laurel blocks are not implemented. Use a Gemma 4 E2B or E4B, "
    "which are the same sizes, one generation later",
    "recurrentgemma": "RecurrentGemma is not supported: its recurrent layers keep a state in the place of keys and "
    "values. Use a Gemma 2 2B or 9B, which are the same sizes",
    "t5gemma": "T5Gemma is not supported: it has an encoder and a decoder. Use a Gemma 2 of its size",
    "t5gemma2": "T5Gemma 2 is not supported: it has an encoder and a decoder. Use a Gemma 3 of its size",
    "diffusiongemma": "DiffusionGemma is not supported: it writes blocks of tokens at once, not one token after "
    "another. Use a Gemma 4 26B-A4B, which is the same size",
}
"""Members of the family that are not implemented, by how their model_type begins, and what to do instead."""

PARTS: Mapping[str, str] = {
    "gemma4_vision": "the vision encoder of a Gemma 4",
    "gemma4_audio": "the audio encoder of a Gemma 4",
    "gemma4_unified_vision": "the vision encoder of a Gemma 4 12B",
    "gemma4_unified_audio": "the audio encoder of a Gemma 4 12B",
}
"""Kinds that are no models by themselves."""


def _unknown(model_type: object, location: str) -> UnsupportedModelError:
    named = model_type.replace("_", "") if isinstance(model_type, str) else ""
    for kind in sorted(OTHER_GEMMAS, key=len, reverse=True):
        if named.startswith(kind):
            return UnsupportedModelError(f"{location}: {OTHER_GEMMAS[kind]}.")
    if isinstance(model_type, str) and model_type in PARTS:
        return UnsupportedModelError(
            f"{location}: expected a model, found {PARTS[model_type]}, which reads no text. Give the folder of the "
            "whole model, whose config.json has this as a part."
        )
    if isinstance(model_type, str) and model_type in DRAFTERS:
        return UnsupportedModelError(
            f"{location}: expected a model, found a drafter of another Gemma 4, which cannot answer by itself. Load "
            "that model, and name this one in drafter=."
        )
    known = ", ".join(sorted({*_READERS, *_MULTIMODAL}))
    return UnsupportedModelError(
        f"{location}: expected a model_type of {known}, found {short(model_type)}. Models of other families are run by "
        "transformers' code, with torchax: before the model's name."
    )


def _shared(f: Fields, *also_tanh: str, both_ways: tuple[bool, ...] = ()) -> dict[str, object]:
    """Return the fields of ``ModelConfig`` that all generations read in the same way."""
    f.refuse("hidden_activation", "Gemma's activation is gelu_pytorch_tanh", "gelu_pytorch_tanh", *also_tanh)
    f.refuse("attention_bias", "Gemma's projections have no biases")
    f.refuse("use_bidirectional_attention", "text is read left to right", "vision", *both_ways)
    tied = f if f.raw.get("tie_word_embeddings") is not None else Fields(f.outer, {}, f.location)
    return {
        "tied_head": tied.get("tie_word_embeddings", True),
        "bos_id": f.token_ids("bos_token_id", (2,))[0],
        "eos_ids": f.token_ids("eos_token_id", (1,)),
        "pad_id": f.token_ids("pad_token_id", (0,))[0],
        "norm_eps": f.positive("rms_norm_eps", 1e-6),
    }


def _refuse_different_layers(f: Fields) -> None:
    f.refuse("per_layer_config", "before Gemma 4, layers differ in their attention only", {})


def _gemma(f: Fields) -> ModelConfig:
    _refuse_different_layers(f)
    head_dim = f.size("head_dim", 256)
    # Its first configs called the tanh approximation, which it was trained with, "gelu".
    f.refuse("hidden_act", "Gemma's activation is gelu_pytorch_tanh", "gelu_pytorch_tanh", "gelu")
    layer = LayerConfig(
        kv_heads=f.size("num_key_value_heads", 16),
        head_dim=head_dim,
        ffw_width=f.size("intermediate_size", 24576),
        rope=one_rope(f),
    )
    return _checked(
        f,
        ModelConfig(
            generation="gemma",
            vocab_size=f.size("vocab_size", 256000),
            width=f.size("hidden_size", 3072),
            heads=f.size("num_attention_heads", 16),
            layers=(layer,) * f.size("num_hidden_layers", 28, MOST_LAYERS),
            max_context=f.size("max_position_embeddings", 8192),
            attention_scale=head_dim**-0.5,
            **_shared(f, "gelu"),  # type: ignore[arg-type]
        ),
    )


def _gemma2(f: Fields) -> ModelConfig:
    _refuse_different_layers(f)
    rope = one_rope(f)
    types = f.layer_types(f.size("num_hidden_layers", 26, MOST_LAYERS), period=2)
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
            attention_scale=float(f.size("query_pre_attn_scalar", 256)) ** -0.5,
            attention_softcap=f.positive_or_none("attn_logit_softcapping", 50.0),
            logits_softcap=f.positive_or_none("final_logit_softcapping", 30.0),
            post_norms=True,
            **_shared(f),  # type: ignore[arg-type]
        ),
    )


def _vaultgemma(f: Fields) -> ModelConfig:
    """Read VaultGemma: a Gemma 2 without the norms after attention and feed-forward."""
    return _gemma2(f).replace(generation="vaultgemma", post_norms=False)


def _gemma3(f: Fields) -> ModelConfig:
    _refuse_different_layers(f)
    f.refuse("attn_logit_softcapping", "Gemma 3 has no cap on attention scores")
    ropes = two_ropes(f)
    period = f.size("sliding_window_pattern", f.size("_sliding_window_pattern", 6))
    types = f.layer_types(f.size("num_hidden_layers", 26, MOST_LAYERS), period)
    window = f.size("sliding_window", 4096)
    both_ways = f.raw.get("use_bidirectional_attention") is True
    if both_ways:
        window = window // 2 + 1  # as many to each side, and itself
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
            attention_scale=float(f.size("query_pre_attn_scalar", 256)) ** -0.5,
            logits_softcap=f.positive_or_none("final_logit_softcapping", None),
            post_norms=True,
            qk_norm=True,
            embedding=EmbeddingConfig() if both_ways else None,
            **_shared(f, both_ways=(True,)),  # type: ignore[arg-type]
        ),
    )


def _gemma4(f: Fields) -> ModelConfig:
    count = f.size("num_hidden_layers", 30, MOST_LAYERS)
    # The last layer is global whatever the pattern says: it has to see the whole context.
    types = (*f.layer_types(count, period=6)[:-1], GLOBAL)
    ropes = two_ropes(f, proportional_by_default=True)
    shared_from = count - f.get("num_kv_shared_layers", 0)
    if not 0 < shared_from <= count:
        raise f.error("num_kv_shared_layers", f"from 0 to {count - 1}", count - shared_from)
    if set(types[:shared_from]) != set(types):
        raise f.error("the layers that own KV", "at least one local and one global", types[:shared_from])
    last_owner = {kind: max(i for i in range(shared_from) if types[i] == kind) for kind in set(types)}
    window, width = f.size("sliding_window", 512), f.size("intermediate_size", 9216)
    heads = _gemma4_heads(f, types)
    layers = []
    for index, (kind, (head_dim, kv_heads)) in enumerate(zip(types, heads, strict=True)):
        is_global, shares = kind == GLOBAL, index >= shared_from
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
    return _checked(
        f,
        ModelConfig(
            generation="gemma4",
            vocab_size=f.size("vocab_size", 262144),
            width=f.size("hidden_size", 2304),
            heads=f.size("num_attention_heads", 8),
            layers=tuple(layers),
            max_context=f.size("max_position_embeddings", 131072),
            norm_offset=0.0,
            attention_scale=1.0,
            logits_softcap=f.positive_or_none("final_logit_softcapping", None),
            post_norms=True,
            qk_norm=True,
            v_norm=True,
            layer_scale=True,
            moe=_moe(f),
            per_layer_input=_per_layer_input(f),
            **_shared(f),  # type: ignore[arg-type]
        ),
    )


def _gemma4_heads(f: Fields, types: Sequence[str]) -> list[tuple[int, int]]:
    """Return ``(head_dim, kv_heads)`` of each layer: local and global layers differ.

    Published configs say so in ``global_head_dim`` and ``num_global_key_value_heads``; configs that
    transformers wrote itself list the exceptions in ``per_layer_config``.
    """
    head_dim, kv_heads = f.size("head_dim", 256), f.size("num_key_value_heads", 4)
    local = (head_dim, kv_heads)
    if "per_layer_config" in f.raw:
        exceptions = _per_layer_config(f, len(types))
        plain = Fields({}, {}, f.location)
        return [
            (one.size("head_dim", head_dim), one.size("num_key_value_heads", kv_heads))
            for one in (exceptions.get(index, plain) for index in range(len(types)))
        ]
    fewer = f.size("num_global_key_value_heads", kv_heads) if f.get("attention_k_eq_v", False) else kv_heads
    everywhere = (f.size("global_head_dim", 512), fewer)
    return [everywhere if kind == GLOBAL else local for kind in types]


def _per_layer_config(f: Fields, count: int) -> dict[int, Fields]:
    """Return the settings of single layers, by index. Keys may be padded to one length: "5", but "05" and "11"."""
    layers: dict[int, Fields] = {}
    table = f.table("per_layer_config")
    for key in table:
        index = int(key) if key.isascii() and key.isdecimal() and len(key) < 10 else count
        if index >= count or index in layers:
            raise f.error("each key of per_layer_config", f"another layer's number, from 0 to {count - 1}", key)
        where = f"{f.location} (per_layer_config)"
        layers[index] = Fields(Fields(table, {}, where).table(key), {}, f"{where} of layer {index}")
        for name in layers[index].raw.keys() - {"head_dim", "num_key_value_heads"}:
            layers[index].refuse(name, "only the heads may differ so")
    return layers


def _embedding_gemma2(f: Fields) -> ModelConfig:
    """Read EmbeddingGemma 2's text tower: Gemma 4's layers in both directions, per-layer inputs without a table."""
    if "rope_parameters" not in f.raw:
        default: dict[str, object] = {"rope_type": "default"}
        ropes = {LOCAL: default | {"rope_theta": LOCAL_THETA}, GLOBAL: default | {"rope_theta": GLOBAL_THETA}}
        f = Fields({**f.raw, "rope_parameters": ropes}, f.outer, f.location)
    defaults = {
        "num_hidden_layers": 24,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 262144,
        "hidden_size_per_layer_input": 512,
        "num_global_key_value_heads": 1,
    }
    f.refuse("enable_moe_block", "EmbeddingGemma 2 has no experts")
    f.refuse("num_kv_shared_layers", "each layer of EmbeddingGemma 2 has keys and values of its own", 0)
    # Gemma 4's configurations name the fewer heads of global layers only where keys are values, too.
    base = _gemma4(Fields({**defaults, **f.raw, "attention_k_eq_v": True}, f.outer, f.location))
    radius = f.size("sliding_window", 512)
    layers = tuple(
        replace(layer, k_eq_v=False, window=None if layer.window is None else radius + 1) for layer in base.layers
    )
    if (inputs := base.per_layer_input) is None:
        raise f.error("hidden_size_per_layer_input", "at least 1", 0)
    return base.replace(
        layers=layers,
        per_layer_input=replace(inputs, vocab_size=0),
        embedding=EmbeddingConfig(dense=((f.size("embedding_dim", 768), base.width),), inside=True),
    )


def _gemma4_unified(f: Fields) -> ModelConfig:
    """Read the text tower of the sizes whose image and audio parts have no separate encoder (12B)."""
    defaults = {"max_position_embeddings": 262144, "sliding_window": 1024}
    absent = {"hidden_size_per_layer_input": 0, "enable_moe_block": False}
    return _gemma4(Fields({**defaults, **f.raw, **absent}, f.outer, f.location))


def _moe(f: Fields) -> MoeConfig | None:
    if not f.get("enable_moe_block", False):
        return None
    moe = MoeConfig(
        experts=f.size("num_experts", 128),
        experts_per_token=f.size("top_k_experts", 8),
        ffw_width=f.size("moe_intermediate_size", 704),
    )
    if moe.experts_per_token > moe.experts:
        raise f.error("top_k_experts", f"at most num_experts={moe.experts}", moe.experts_per_token)
    return moe


def _per_layer_input(f: Fields) -> PerLayerInputConfig | None:
    if f.get("hidden_size_per_layer_input", 256) == 0:
        return None
    return PerLayerInputConfig(
        width=f.size("hidden_size_per_layer_input", 256), vocab_size=f.size("vocab_size_per_layer_input", 262144)
    )


def _checked(f: Fields, config: ModelConfig) -> ModelConfig:
    for index, layer in enumerate(config.layers):
        if config.heads % layer.kv_heads:
            raise ConfigError(
                f"{f.location}: expected the {config.heads} attention heads to be a multiple of the key-value heads, "
                f"found {layer.kv_heads} in layer {index}."
            )
        if layer.head_dim % 2:
            raise ConfigError(f"{f.location}: expected an even head_dim, found {layer.head_dim} in layer {index}.")
        source = layer if layer.kv_from is None else config.layers[layer.kv_from]
        if (layer.head_dim, layer.kv_heads) != (source.head_dim, source.kv_heads):
            raise ConfigError(
                f"{f.location}: expected layer {index} to have the heads of layer {layer.kv_from}, whose KV it reads, "
                f"found {layer.kv_heads} of size {layer.head_dim} instead of {source.kv_heads} of {source.head_dim}."
            )
    return config


_READERS: Mapping[str, Callable[[Fields], ModelConfig]] = {
    "gemma": _gemma,
    "gemma2": _gemma2,
    "vaultgemma": _vaultgemma,
    "gemma3_text": _gemma3,
    "gemma4_text": _gemma4,
    "gemma4_unified_text": _gemma4_unified,
    "embedding_gemma2_text": _embedding_gemma2,
}
_MULTIMODAL: Mapping[str, tuple[str, ...]] = {
    "gemma3": ("gemma3_text",),
    "shieldgemma2": ("gemma3_text",),
    "paligemma": ("gemma", "gemma2"),
    "gemma4": ("gemma4_text",),
    "gemma4_unified": ("gemma4_unified_text",),
    "embedding_gemma2": ("embedding_gemma2_text",),
}
"""The kinds of models around a text tower, each with the kinds of tower that it can have; the first is the default."""


LOCAL_THETA, GLOBAL_THETA = 10_000.0, 1_000_000.0


def one_rope(f: Fields) -> Rope:
    """Read the rope of Gemma 1 and 2: one base for all layers."""
    parameters = f.table("rope_parameters")
    f.refuse("rope_scaling", "this generation was trained without rope scaling")
    return _rope({"rope_theta": f.get("rope_theta", LOCAL_THETA), **parameters}, f.location)


def two_ropes(f: Fields, *, proportional_by_default: bool = False) -> dict[str, Rope]:
    """Read the ropes of Gemma 3 and 4: local and global layers rotate at different speeds."""
    local: dict[str, object] = {"rope_theta": f.get("rope_local_base_freq", LOCAL_THETA)}
    everywhere: dict[str, object] = {"rope_theta": f.get("rope_theta", GLOBAL_THETA), **f.table("rope_scaling")}
    parameters = f.table("rope_parameters")
    if proportional_by_default and not parameters:
        everywhere |= {"rope_type": "proportional", "partial_rotary_factor": 0.25}
    newer = Fields(parameters, {}, f.location)
    return {
        LOCAL: _rope({**local, **newer.table(LOCAL)}, f.location),
        GLOBAL: _rope({**everywhere, **newer.table(GLOBAL)}, f.location),
    }


def _rope(parameters: Raw, location: str) -> Rope:
    f = Fields(parameters, {}, f"{location} (rope)")
    kind = f.get("rope_type", f.get("type", "default"))
    theta, share = f.positive("rope_theta", 0.0), f.positive("partial_rotary_factor", 1.0)
    if share > 1:
        raise f.error("partial_rotary_factor", "at most 1", share)
    if kind == "default":
        return Rope(theta)
    if kind == "linear":
        f.refuse("partial_rotary_factor", "linear scaling turns whole heads", 1)
        return Rope(theta, position_scale=f.positive("factor", 0.0))
    if kind == "proportional":
        return Rope(theta, position_scale=f.positive("factor", 1.0), rotated_share=share)
    raise UnsupportedModelError(
        f"{f.location}: expected rope_type default, linear or proportional, found {short(kind)}."
    )
