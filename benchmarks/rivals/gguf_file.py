"""A Gemma 3 checkpoint as llama.cpp reads it: GGUF, of the same numbers.

llama.cpp multiplies by the norm weights as they stand, so one is added to them here. The tokenizer is
a stub of the right size: only ids go in and come out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from gguf.utility import SafetensorsLocal

IN_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "post_feedforward_layernorm": "post_ffw_norm",
}
OUTSIDE = {"embed_tokens": "token_embd", "norm": "output_norm"}
TYPES = {"float32": gguf.GGMLQuantizationType.F32, "bfloat16": gguf.GGMLQuantizationType.BF16}


def write_gguf(checkpoint: Path, path: Path, dtype: str) -> None:
    """Write the float32 checkpoint in the folder ``checkpoint`` as the file ``path``, its matrices in ``dtype``."""
    config = json.loads((checkpoint / "config.json").read_text())
    unfinished = path.with_suffix(".unfinished")
    writer = gguf.GGUFWriter(unfinished, "gemma3")
    _add_architecture(writer, config)
    _add_stub_tokenizer(writer, config["vocab_size"])
    for name, stored in SafetensorsLocal(checkpoint / "model.safetensors").tensors.items():
        if stored.dtype != "F32":
            raise ValueError(f"{checkpoint}: expected {name!r} in F32, found {stored.dtype}.")
        values: npt.NDArray[np.float32] = stored.mmap_bytes().view(np.float32).reshape(stored.shape)
        if values.ndim == 1:
            writer.add_tensor(gguf_name(name), values + np.float32(1))
        else:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(values, TYPES[dtype]), raw_dtype=TYPES[dtype])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.rename(path)


def gguf_name(name: str) -> str:
    """``blk.3.attn_q.weight`` for ``model.layers.3.self_attn.q_proj.weight``."""
    inner = name.removeprefix("model.").removesuffix(".weight")
    if not inner.startswith("layers."):
        return f"{OUTSIDE[inner]}.weight"
    _, layer, rest = inner.split(".", 2)
    return f"blk.{layer}.{IN_LAYER[rest]}.weight"


def _add_architecture(writer: gguf.GGUFWriter, config: Mapping[str, int]) -> None:
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_sliding_window(config["sliding_window"])
    writer.add_rope_freq_base(config["rope_theta"])


def _add_stub_tokenizer(writer: gguf.GGUFWriter, size: int) -> None:
    control, unknown, normal = gguf.TokenType.CONTROL, gguf.TokenType.UNKNOWN, gguf.TokenType.NORMAL
    special = [b"<pad>", b"<eos>", b"<bos>", b"<unk>"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*special, *(f"t{token}".encode() for token in range(len(special), size))])
    writer.add_token_scores([0.0] * size)
    writer.add_token_types([control, control, control, unknown, *[normal] * (size - len(special))])
    writer.add_pad_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_bos_token_id(2)
    writer.add_unk_token_id(3)
