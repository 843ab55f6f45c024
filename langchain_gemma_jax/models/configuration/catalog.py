"""The published sizes, for checkpoints without a ``config.json``.

An entry has the values of its published ``config.json`` that differ from its generation's defaults;
the same reader turns both into a ``ModelConfig``. Orbax folders, which hold no configuration, are
recognized by comparing shapes with these. Any other size works too, if its ``config.json`` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.config_fields import Raw
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig


def _sizes(layers: int, width: int, ffw: int, heads: int, kv_heads: int, head_dim: int = 256) -> Raw:
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": ffw,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }


def _gemma(sizes: Raw) -> Raw:
    return {"model_type": "gemma", **sizes}


def _gemma2(sizes: Raw, scale: int = 256) -> Raw:
    return {"model_type": "gemma2", "query_pre_attn_scalar": scale, **sizes}


def _gemma3_small(sizes: Raw) -> Raw:
    return {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "sliding_window": 512,
        "max_position_embeddings": 32768,
        "eos_token_id": [1, 106],
        **sizes,
    }


def _gemma3(sizes: Raw, scale: int = 256) -> Raw:
    return {
        "model_type": "gemma3_text",
        "vocab_size": 262208,
        "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "query_pre_attn_scalar": scale,
        "eos_token_id": [1, 106],
        **sizes,
    }


def _gemma4(sizes: Raw, **more: object) -> Raw:
    return {
        "model_type": "gemma4_text",
        "final_logit_softcapping": 30.0,
        "hidden_size_per_layer_input": 0,
        "eos_token_id": [1, 106, 50],
        **sizes,
        **more,
    }


def _every(period: int, count: int) -> list[str]:
    return ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(count)]


_LARGE = {"sliding_window": 1024, "attention_k_eq_v": True, "max_position_embeddings": 262144}

_PUBLISHED: Mapping[str, Raw] = {
    "gemma-2b": _gemma(_sizes(18, 2048, 16384, 8, 1)),
    "gemma-7b": _gemma(_sizes(28, 3072, 24576, 16, 16)),
    "gemma-2-2b": _gemma2(_sizes(26, 2304, 9216, 8, 4)),
    "gemma-2-9b": _gemma2(_sizes(42, 3584, 14336, 16, 8)),
    "gemma-2-27b": _gemma2(_sizes(46, 4608, 36864, 32, 16, 128), scale=144),
    "gemma-3-270m": _gemma3_small(_sizes(18, 640, 2048, 4, 1)),
    "gemma-3-1b": _gemma3_small(_sizes(26, 1152, 6912, 4, 1)),
    "gemma-3-4b": _gemma3(_sizes(34, 2560, 10240, 8, 4)),
    "gemma-3-12b": _gemma3(_sizes(48, 3840, 15360, 16, 8)),
    "gemma-3-27b": _gemma3(_sizes(62, 5376, 21504, 32, 16, 128), scale=168),
    "functiongemma-270m": _gemma3_small(_sizes(18, 640, 2048, 4, 1)),
    "gemma-4-e2b": _gemma4(
        _sizes(35, 1536, 6144, 8, 1),
        layer_types=_every(5, 35),
        hidden_size_per_layer_input=256,
        num_kv_shared_layers=20,
        use_double_wide_mlp=True,
    ),
    "gemma-4-e4b": _gemma4(_sizes(42, 2560, 10240, 8, 2), hidden_size_per_layer_input=256, num_kv_shared_layers=18),
    "gemma-4-31b": _gemma4(_sizes(60, 5376, 21504, 32, 16), num_global_key_value_heads=4, **_LARGE),
    "gemma-4-26b-a4b": _gemma4(
        _sizes(30, 2816, 2112, 16, 8),
        num_global_key_value_heads=2,
        enable_moe_block=True,
        num_experts=128,
        top_k_experts=8,
        moe_intermediate_size=704,
        **_LARGE,
    ),
}


@cache
def known() -> Mapping[str, ModelConfig]:
    """Return the configuration of every published size, by name."""
    return MappingProxyType({name: config_from_hf(raw, f"the catalog's {name}") for name, raw in _PUBLISHED.items()})


def published(name: str) -> ModelConfig:
    """Return the configuration of one published size.

    >>> published("gemma-3-270m").width
    640
    """
    try:
        return known()[name]
    except KeyError:
        raise UnsupportedModelError(f"expected one of {', '.join(known())}, found {name!r}.") from None


# By the kind of model that a config.json names: the encoders that are implemented, and what each takes.
_ENCODERS: Mapping[str, Mapping[str, str]] = {
    "gemma3": {"vision_config": "image"},
    "shieldgemma2": {"vision_config": "image"},
    "paligemma": {"vision_config": "image"},
    "gemma4": {"vision_config": "image", "audio_config": "audio"},
    "gemma4_unified": {"vision_config": "image", "audio_config": "audio"},
}
_ONLY_READ = ("gemma-2b", "gemma-7b", "gemma-2-", "gemma-3-270m", "gemma-3-1b", "functiongemma")
_HEARING = ("gemma-4-e2b", "gemma-4-e4b")


def senses_of_config(raw: Raw) -> frozenset[str]:
    """Return a model's inputs other than text, by its ``config.json``: ``image``, ``audio``, both or neither."""
    encoders = _ENCODERS.get(str(raw.get("model_type")), {})
    return frozenset(kind for name, kind in encoders.items() if raw.get(name) is not None)


def senses_of_size(name: str) -> frozenset[str]:
    """Return the inputs other than text of a published size."""
    if name.startswith(_ONLY_READ):
        return frozenset()
    return frozenset({"image", "audio"} if name.startswith(_HEARING) else {"image"})
