"""A tiny random Gemma 3 as a repository on the Hub has it: file names and their bytes."""

from __future__ import annotations

import json

import numpy as np
import tokenizers
from safetensors.numpy import save
from tokenizers import decoders, models, normalizers

CONFIG = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "vocab_size": 320,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "query_pre_attn_scalar": 8,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"],
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "bos_token_id": 2,
    "eos_token_id": 1,
    "pad_token_id": 0,
    "torch_dtype": "float32",
}


def tiny_tensors(seed: int = 0) -> dict[str, np.ndarray]:
    """Its weights, by Hugging Face's names."""
    random = np.random.default_rng(seed)
    width, ffw, size = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["head_dim"]
    queries, keys = CONFIG["num_attention_heads"] * size, CONFIG["num_key_value_heads"] * size
    norms = ("input", "post_attention", "pre_feedforward", "post_feedforward")
    layer = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, queries),
        "self_attn.q_norm": (size,),
        "self_attn.k_norm": (size,),
        "mlp.gate_proj": (ffw, width),
        "mlp.up_proj": (ffw, width),
        "mlp.down_proj": (width, ffw),
        **{f"{name}_layernorm": (width,) for name in norms},
    }
    shapes = {"model.embed_tokens": (CONFIG["vocab_size"], width), "model.norm": (width,)}
    for index in range(CONFIG["num_hidden_layers"]):
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": random.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def tiny_gemma(*, seed: int = 0, shards: int = 1) -> dict[str, bytes]:
    """All its files, the weights in one file or in ``shards`` of them with an index."""
    files = {
        "config.json": json.dumps(CONFIG).encode(),
        "generation_config.json": json.dumps({"eos_token_id": [1, 106], "top_k": 64}).encode(),
        "tokenizer.json": _tokenizer().encode(),
        "tokenizer_config.json": b'{"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}',
    }
    tensors = tiny_tensors(seed)
    if shards == 1:
        return files | {"model.safetensors": save(tensors)}
    parts = {f"model-{i + 1:05}-of-{shards:05}.safetensors": sorted(tensors)[i::shards] for i in range(shards)}
    places = {name: file for file, names in parts.items() for name in names}
    return (
        files
        | {file: save({name: tensors[name] for name in names}) for file, names in parts.items()}
        | {"model.safetensors.index.json": json.dumps({"metadata": {}, "weight_map": places}).encode()}
    )


def _tokenizer() -> str:
    """A ``tokenizer.json`` of Gemma's kind that knows capital letters and bytes."""
    names = [
        "<pad>",
        "<eos>",
        "<bos>",
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        *map(chr, range(65, 91)),
    ]
    model = models.BPE({name: i for i, name in enumerate(names)}, [], byte_fallback=True, unk_token="<unk>")
    library = tokenizers.Tokenizer(model)
    library.normalizer = normalizers.Replace(" ", "▁")
    library.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens(names[:4])
    text: str = library.to_str()
    return text
