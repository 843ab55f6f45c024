"""Every architecture, shrunk: tiny widths, all of its mechanisms, and the pattern of its layers.

Each entry is a ``config.json`` spelled as its published model spells it, with other numbers. The references are
built from these, the committed vectors too, and our own tests. A window of 8 lets a short prompt cross it often.

Plain values only: this file is read in environments that have no JAX, and in one that has no torch.
"""

from __future__ import annotations

from collections.abc import Mapping

WINDOW, VOCABULARY = 8, 160
LOCAL, GLOBAL = "sliding_attention", "full_attention"

Raw = Mapping[str, object]


def _sizes(layers: int, heads: int, kv_heads: int, head_dim: int, **more: object) -> Raw:
    return {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-6,
        "bos_token_id": 2,
        "pad_token_id": 0,
        "attention_bias": False,
        **more,
    }


def _every(period: int, layers: int) -> list[str]:
    return [GLOBAL if (i + 1) % period == 0 else LOCAL for i in range(layers)]


def _gemma(*sizes: int) -> Raw:
    return {
        "model_type": "gemma",
        "hidden_act": "gelu",  # as published; what it means is the tanh approximation
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "eos_token_id": 1,
        **_sizes(*sizes),
    }


def _gemma2(*sizes: int, scale: int) -> Raw:
    return {
        "model_type": "gemma2",
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": scale,
        "rope_theta": 10000.0,
        "sliding_window": WINDOW,
        "cache_implementation": "hybrid",
        "eos_token_id": [1, 107],
        **_sizes(*sizes),
    }


def _vaultgemma(*sizes: int, scale: int, **more: object) -> Raw:
    """A Gemma 2 as VaultGemma has it: transformers writes its rope in the newer way."""
    left_out = {"hidden_act", "rope_theta", "cache_implementation"}
    alike = {name: value for name, value in _gemma2(*sizes, scale=scale).items() if name not in left_out}
    rope = {"rope_theta": 10000.0, "rope_type": "default"}
    return {**alike, "model_type": "vaultgemma", "eos_token_id": 1, "rope_parameters": rope, **more}


def _gemma3_small(*sizes: int, **more: object) -> Raw:
    return {
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "query_pre_attn_scalar": sizes[-1],
        "rope_local_base_freq": 10000,
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": WINDOW,
        "eos_token_id": [1, 106],
        **_sizes(*sizes),
        **more,
    }


def _gemma3(*sizes: int, scale: int) -> Raw:
    """The published configs of 4B and up leave out what is a default: the pattern, and all of rope but the scaling."""
    return {
        "model_type": "gemma3_text",
        "query_pre_attn_scalar": scale,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": WINDOW,
        **_sizes(*sizes),
    }


def _gemma4(*sizes: int, layer_types: list[str], **more: object) -> Raw:
    return {
        "model_type": "gemma4_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_k_eq_v": False,
        "enable_moe_block": False,
        "final_logit_softcapping": 30.0,
        "global_head_dim": 16,
        "hidden_size_per_layer_input": 0,
        "layer_types": layer_types,
        "num_global_key_value_heads": None,
        "num_kv_shared_layers": 0,
        "rope_parameters": {
            GLOBAL: {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
            LOCAL: {"rope_theta": 10000.0, "rope_type": "default"},
        },
        "sliding_window": WINDOW,
        "use_double_wide_mlp": False,
        "vocab_size_per_layer_input": VOCABULARY,
        "eos_token_id": [1, 106, 50],
        **_sizes(*sizes),
        **more,
    }


_GEMMA4_E4B = _gemma4(
    12, 4, 2, 8, layer_types=_every(6, 12), hidden_size_per_layer_input=8, num_kv_shared_layers=6
)  # fmt: skip

SHRUNK: Mapping[str, Raw] = {
    "gemma-2b": _gemma(3, 4, 1, 8),
    "gemma-7b": _gemma(3, 4, 4, 12),
    "gemma-2-2b": _gemma2(4, 4, 2, 10, scale=10),
    "gemma-2-9b": _gemma2(4, 8, 4, 6, scale=6),
    "gemma-2-27b": _gemma2(4, 4, 2, 6, scale=8),  # the scale is that of width / heads, not of the head's size
    "vaultgemma-1b": _vaultgemma(4, 4, 4, 8, scale=8, layer_types=_every(2, 4)),
    "vaultgemma-odd": _vaultgemma(5, 4, 1, 10, scale=7, hidden_size=44, intermediate_size=20, sliding_window=5),
    "vaultgemma-three": _vaultgemma(
        3, 6, 3, 6, scale=3, hidden_size=36, layer_types=[GLOBAL, LOCAL, LOCAL], attn_logit_softcapping=5.0
    ),
    "gemma-3-270m": _gemma3_small(
        6, 4, 1, 10, _sliding_window_pattern=6, layer_types=_every(6, 6), use_bidirectional_attention=False
    ),
    "gemma-3-1b": _gemma3_small(8, 4, 1, 8, sliding_window_pattern=6),
    "gemma-3-4b": _gemma3(10, 4, 2, 10, scale=10),
    "gemma-3-27b": _gemma3(8, 4, 2, 6, scale=8),
    "functiongemma-270m": _gemma3_small(6, 4, 1, 10, layer_types=_every(6, 6), eos_token_id=[1, 106, 50]),
    "gemma-4-e2b": _gemma4(
        15,
        4,
        1,
        8,
        layer_types=_every(5, 15),
        hidden_size_per_layer_input=8,
        num_kv_shared_layers=5,
        use_double_wide_mlp=True,
    ),
    "gemma-4-e4b": _GEMMA4_E4B,
    "gemma-4-12b": {
        **_gemma4(6, 8, 4, 8, layer_types=_every(6, 6), attention_k_eq_v=True, num_global_key_value_heads=1),
        "model_type": "gemma4_unified_text",
    },
    "gemma-4-31b": _gemma4(6, 8, 4, 8, layer_types=_every(6, 6), attention_k_eq_v=True, num_global_key_value_heads=2),
    "gemma-4-26b-a4b": _gemma4(
        6,
        4,
        2,
        8,
        layer_types=_every(6, 6),
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        enable_moe_block=True,
        num_experts=16,
        top_k_experts=4,
        moe_intermediate_size=12,
    ),
}

_VISION = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}

MULTIMODAL: Mapping[str, Raw] = {
    "gemma-3-4b-multimodal": {
        "model_type": "gemma3",
        "eos_token_id": [1, 106],
        "image_token_index": VOCABULARY,
        "mm_tokens_per_image": 1,
        "text_config": SHRUNK["gemma-3-4b"],
        "vision_config": _VISION | {"model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14},
    },
    "gemma-4-e4b-multimodal": {
        "model_type": "gemma4",
        "eos_token_id": [1, 106, 50],
        "image_token_id": VOCABULARY,
        "audio_token_id": VOCABULARY + 1,
        "video_token_id": VOCABULARY + 2,
        "audio_config": None,
        "text_config": _GEMMA4_E4B,
        "vision_config": _VISION
        | {"model_type": "gemma4_vision", "num_key_value_heads": 2, "head_dim": 4, "position_embedding_size": 4},
    },
}
"""The whole model around a text tower: only the text tower is read, and only text goes in (its ids mean no image)."""

EMBEDDER: Raw = {
    **SHRUNK["gemma-3-270m"],
    "architectures": ["Gemma3TextModel"],
    "use_bidirectional_attention": True,
}
"""EmbeddingGemma: a Gemma 3 that reads in both directions."""

EMBEDDER_2: Raw = {
    "model_type": "embedding_gemma2_text",
    **_sizes(6, 4, 2, 8, hidden_activation="gelu_pytorch_tanh", sliding_window=4, layer_types=_every(3, 6)),
    "eos_token_id": 1,
    "global_head_dim": 12,
    "num_global_key_value_heads": 1,
    "hidden_size_per_layer_input": 10,
    "embedding_dim": 20,
}
"""EmbeddingGemma 2: Gemma 4's layers, in both directions."""

EMBEDDER_DENSE: Mapping[str, tuple[int, int]] = {"2_Dense": (64, 32), "3_Dense": (32, 64)}
"""The matrices behind the mean of its tokens, (outputs, inputs) by their folders."""

EMBEDDERS: Mapping[str, tuple[Raw, Mapping[str, tuple[int, int]], float]] = {
    "embeddinggemma": (EMBEDDER, EMBEDDER_DENSE, 1.0),
    "embeddinggemma-2": (EMBEDDER_2, {}, 0.0),
}
"""Embedding models, each with the matrices behind the mean that are in folders of their own, and its norms' offset."""

GEMMA_LIBRARY = (
    "gemma-2b",
    "gemma-7b",
    "gemma2-2b",
    "gemma2-27b",
    "gemma3-1b",
    "gemma3-4b",
    "gemma4-e2b",
    "gemma4-e4b",
    "gemma4-31b",
    "gemma4-26b-a4b",
)
"""The names of ``gemma_tree_dump.py``'s models, which the official library shrinks itself."""


def with_few_layers(name: str) -> Raw:
    """An architecture of ``SHRUNK`` with no more layers than its mechanisms need: quick to compile."""
    raw = SHRUNK[name]
    if raw["model_type"] == "gemma":
        return {**raw, "num_hidden_layers": 2}
    shared = 2 if raw.get("num_kv_shared_layers") else 0
    types = (
        [LOCAL, GLOBAL, LOCAL, GLOBAL]
        if shared
        else [LOCAL, GLOBAL, LOCAL]
        if name == "gemma-3-1b"
        else [LOCAL, GLOBAL]
    )
    return {**raw, "num_hidden_layers": len(types), "layer_types": types, "num_kv_shared_layers": shared}
