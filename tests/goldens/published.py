"""The ``config.json`` of every published size, as the Hub has it.

Left out is only what says nothing of the text model's mathematics: vision and audio parts, dropout, dtypes, versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

LOCAL, GLOBAL = "sliding_attention", "full_attention"

Raw = Mapping[str, object]


def _sizes(layers: int, width: int, ffw: int, heads: int, kv_heads: int, head_dim: int = 256) -> Raw:
    return {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "intermediate_size": ffw,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
    }


def _every(period: int, layers: int) -> list[str]:
    return [GLOBAL if (i + 1) % period == 0 else LOCAL for i in range(layers)]


_GEMMA = {
    "architectures": ["GemmaForCausalLM"],
    "attention_bias": False,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "hidden_act": "gelu",
    "initializer_range": 0.02,
    "max_position_embeddings": 8192,
    "model_type": "gemma",
    "pad_token_id": 0,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "use_cache": True,
    "vocab_size": 256000,
}

_GEMMA_2 = {
    "architectures": ["Gemma2ForCausalLM"],
    "attention_bias": False,
    "attn_logit_softcapping": 50.0,
    "bos_token_id": 2,
    "cache_implementation": "hybrid",
    "eos_token_id": 1,
    "final_logit_softcapping": 30.0,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 8192,
    "model_type": "gemma2",
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0,
    "sliding_window": 4096,
    "vocab_size": 256000,
}

_GEMMA_3_SMALL = {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "hidden_activation": "gelu_pytorch_tanh",
    "max_position_embeddings": 32768,
    "model_type": "gemma3_text",
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "sliding_window": 512,
    "vocab_size": 262144,
}

_GEMMA_3_270M = {
    **_GEMMA_3_SMALL,
    **_sizes(18, 640, 2048, 4, 1),
    "_sliding_window_pattern": 6,
    "layer_types": _every(6, 18),
    "rope_local_base_freq": 10000.0,
    "rope_theta": 1000000.0,
    "use_bidirectional_attention": False,
}


def _gemma_3(**text: object) -> Raw:
    """Only what differs from the defaults is published."""
    return {
        "architectures": ["Gemma3ForConditionalGeneration"],
        "boi_token_index": 255999,
        "eoi_token_index": 256000,
        "eos_token_id": [1, 106],
        "image_token_index": 262144,
        "mm_tokens_per_image": 256,
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
            **text,
        },
        "vision_config": {"model_type": "siglip_vision_model"},
    }


def _gemma_4(sizes: Raw, model_type: str = "gemma4", **text: object) -> Raw:
    return {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "boi_token_id": 255999,
        "eos_token_id": [1, 106],
        "image_token_id": 258880,
        "model_type": model_type,
        "text_config": {
            "attention_bias": False,
            "attention_k_eq_v": False,
            "bos_token_id": 2,
            "enable_moe_block": False,
            "eos_token_id": 1,
            "final_logit_softcapping": 30.0,
            "global_head_dim": 512,
            "hidden_activation": "gelu_pytorch_tanh",
            "hidden_size_per_layer_input": 0,
            "max_position_embeddings": 262144,
            "model_type": f"{model_type}_text",
            "moe_intermediate_size": None,
            "num_experts": None,
            "num_global_key_value_heads": None,
            "num_kv_shared_layers": 0,
            "pad_token_id": 0,
            "rms_norm_eps": 1e-06,
            "rope_parameters": {
                GLOBAL: {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
                LOCAL: {"rope_theta": 10000.0, "rope_type": "default"},
            },
            "sliding_window": 1024,
            "tie_word_embeddings": True,
            "top_k_experts": None,
            "use_bidirectional_attention": "vision",
            "use_double_wide_mlp": False,
            "vocab_size": 262144,
            "vocab_size_per_layer_input": 262144,
            **sizes,
            **text,
        },
        "tie_word_embeddings": True,
    }


_GEMMA_4_SMALL = {
    "hidden_size_per_layer_input": 256,
    "max_position_embeddings": 131072,
    "sliding_window": 512,
    "use_bidirectional_attention": None,
}

PUBLISHED: Mapping[str, Raw] = {
    "gemma-2b": {**_GEMMA, **_sizes(18, 2048, 16384, 8, 1)},
    "gemma-7b": {**_GEMMA, **_sizes(28, 3072, 24576, 16, 16)},
    "gemma-2-2b": {**_GEMMA_2, **_sizes(26, 2304, 9216, 8, 4)},
    "gemma-2-9b": {**_GEMMA_2, **_sizes(42, 3584, 14336, 16, 8), "sliding_window_size": 4096},
    "gemma-2-27b": {**_GEMMA_2, **_sizes(46, 4608, 36864, 32, 16, 128), "query_pre_attn_scalar": 144},
    "gemma-3-270m": _GEMMA_3_270M,
    "gemma-3-1b": {
        **_GEMMA_3_SMALL,
        **_sizes(26, 1152, 6912, 4, 1),
        "cache_implementation": "hybrid",
        "rope_local_base_freq": 10000,
        "rope_theta": 1000000,
        "sliding_window_pattern": 6,
    },
    "gemma-3-4b": _gemma_3(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34),
    "gemma-3-12b": _gemma_3(
        hidden_size=3840,
        intermediate_size=15360,
        num_attention_heads=16,
        num_hidden_layers=48,
        num_key_value_heads=8,
    ),
    "gemma-3-27b": _gemma_3(
        head_dim=128,
        hidden_size=5376,
        intermediate_size=21504,
        num_attention_heads=32,
        num_hidden_layers=62,
        num_key_value_heads=16,
        query_pre_attn_scalar=168,
    ),
    "functiongemma-270m": _GEMMA_3_270M,
    "gemma-4-e2b": _gemma_4(
        _sizes(35, 1536, 6144, 8, 1),
        layer_types=_every(5, 35),
        num_kv_shared_layers=20,
        **_GEMMA_4_SMALL | {"use_double_wide_mlp": True},
    ),
    "gemma-4-e4b": _gemma_4(
        _sizes(42, 2560, 10240, 8, 2), layer_types=_every(6, 42), num_kv_shared_layers=18, **_GEMMA_4_SMALL
    ),
    "gemma-4-12b": _gemma_4(
        _sizes(48, 3840, 15360, 16, 8),
        model_type="gemma4_unified",
        attention_k_eq_v=True,
        layer_types=_every(6, 48),
        num_global_key_value_heads=1,
    ),
    "gemma-4-31b": _gemma_4(
        _sizes(60, 5376, 21504, 32, 16), attention_k_eq_v=True, layer_types=_every(6, 60), num_global_key_value_heads=4
    ),
    "gemma-4-26b-a4b": _gemma_4(
        _sizes(30, 2816, 2112, 16, 8),
        attention_k_eq_v=True,
        enable_moe_block=True,
        layer_types=_every(6, 30),
        moe_intermediate_size=704,
        num_experts=128,
        num_global_key_value_heads=2,
        top_k_experts=8,
    ),
}


def digest(name: str) -> str:
    """Changes with the entry: what was made from it says so."""
    return hashlib.sha256(json.dumps(PUBLISHED[name], sort_keys=True).encode()).hexdigest()
