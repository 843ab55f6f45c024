"""Writes reference_names.json: what transformers saves for tiny models of every kind, names and shapes.

Run with transformers installed: python tests/models/checkpoint/make_reference_names.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    Gemma2Config,
    Gemma3Config,
    Gemma3TextConfig,
    Gemma4Config,
    Gemma4TextConfig,
    GemmaConfig,
    PreTrainedConfig,
)

TEXT = {
    "vocab_size": 48,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 8,
    "max_position_embeddings": 64,
}
TYPES = ["sliding_attention", "sliding_attention", "full_attention"]
VISION = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2}
GEMMA_4 = TEXT | {"layer_types": TYPES, "global_head_dim": 12, "hidden_size_per_layer_input": 0}
PLE = {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 32}
SHARED = {
    "num_hidden_layers": 4,
    "num_kv_shared_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "use_double_wide_mlp": True,
}
MOE = {"enable_moe_block": True, "num_experts": 4, "top_k_experts": 2, "moe_intermediate_size": 6}
K_EQ_V = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}

CONFIGS: dict[str, PreTrainedConfig] = {
    "gemma": GemmaConfig(**{name: value for name, value in TEXT.items() if name != "sliding_window"}),
    "gemma2": Gemma2Config(**TEXT),
    "gemma3_text": Gemma3TextConfig(**TEXT, layer_types=TYPES),
    "gemma3": Gemma3Config(
        text_config=TEXT | {"layer_types": TYPES},
        vision_config=VISION | {"image_size": 28, "patch_size": 14},
        mm_tokens_per_image=1,
    ),
    "gemma4_text": Gemma4TextConfig(**GEMMA_4),
    "gemma4_text_untied": Gemma4TextConfig(**GEMMA_4, tie_word_embeddings=False),
    "gemma4_shared_kv": Gemma4TextConfig(**GEMMA_4 | PLE | SHARED),
    "gemma4_moe": Gemma4TextConfig(**GEMMA_4 | MOE | K_EQ_V),
    "gemma4": Gemma4Config(
        text_config=GEMMA_4 | PLE,
        vision_config=VISION | {"num_key_value_heads": 2, "head_dim": 4, "position_embedding_size": 4},
        audio_config=None,
    ),
}


def saved(config: PreTrainedConfig) -> dict[str, object]:
    kind = AutoModelForImageTextToText if hasattr(config, "text_config") else AutoModelForCausalLM
    with tempfile.TemporaryDirectory() as folder:
        kind.from_config(config).save_pretrained(folder)
        content = Path(folder, "model.safetensors").read_bytes()
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        header.pop("__metadata__")
        return {
            "config": json.loads(Path(folder, "config.json").read_text()),
            "tensors": {name: header[name]["shape"] for name in sorted(header)},
        }


reference = {name: saved(config) for name, config in CONFIGS.items()}
lines = [f"{json.dumps(name)}: {json.dumps(case, separators=(',', ':'))}" for name, case in reference.items()]
Path(__file__).with_name("reference_names.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
