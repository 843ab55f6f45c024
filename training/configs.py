"""The embedded models: their sizes, as the ``config.json`` that is shipped with them."""

from __future__ import annotations

from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

CONTEXT = 4096
BOS = 2
EOS = (1, 5, 10)  # the end of the text, of a turn, and where tool results go: <eos>, <turn|>, <|tool_response>

_SHARED: dict[str, object] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "vocab_size": 4096,
    "max_position_embeddings": CONTEXT,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "final_logit_softcapping": None,
    "rope_theta": 1_000_000.0,
    "rope_local_base_freq": 10_000.0,
    "sliding_window": 256,
    "pad_token_id": 0,
    "eos_token_id": list(EOS),
    "bos_token_id": BOS,
    "use_cache": True,
}


def _sizes(
    layers: int, width: int, heads: int, kv_heads: int, head_dim: int, ffw_width: int, *, period: int
) -> dict[str, object]:
    kinds = ["full_attention" if index % period == period - 1 else "sliding_attention" for index in range(layers)]
    return _SHARED | {
        "num_hidden_layers": layers,
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "query_pre_attn_scalar": head_dim,
        "intermediate_size": ffw_width,
        "layer_types": kinds,
    }


HF_CONFIGS: dict[str, dict[str, object]] = {
    "sprout-s": _sizes(6, width=160, heads=4, kv_heads=2, head_dim=32, ffw_width=320, period=2),
    "sprout-m": _sizes(10, width=320, heads=8, kv_heads=4, head_dim=32, ffw_width=640, period=2),
}


def model_config(name: str) -> ModelConfig:
    """The configuration of an embedded model, read as the package reads it."""
    return config_from_hf(HF_CONFIGS[name], name)
