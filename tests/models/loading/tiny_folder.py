"""The folder of a tiny Gemma, as the Hub has it."""

from __future__ import annotations

import numpy as np
import tokenizers

CONFIG = {
    "model_type": "gemma",
    "architectures": ["GemmaForCausalLM"],
    "vocab_size": 264,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
}


def tensors(dtype=np.float32):
    chance = np.random.default_rng(0)
    shapes = {"embed_tokens": (264, 16), "norm": (16,)}
    for index in range(2):
        shapes |= {
            f"layers.{index}.{name}": shape
            for name, shape in {
                "self_attn.q_proj": (16, 16),
                "self_attn.k_proj": (8, 16),
                "self_attn.v_proj": (8, 16),
                "self_attn.o_proj": (16, 16),
                "mlp.gate_proj": (24, 16),
                "mlp.up_proj": (24, 16),
                "mlp.down_proj": (16, 24),
                "input_layernorm": (16,),
                "post_attention_layernorm": (16,),
            }.items()
        }
    return {f"model.{name}.weight": chance.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def write_tokenizer(folder):
    """One of Gemma's kind, that knows no words but bytes."""
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    library = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    library.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    decoders = tokenizers.decoders
    library.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    library.add_special_tokens(pieces[:4])
    library.save(str(folder / "tokenizer.json"))
