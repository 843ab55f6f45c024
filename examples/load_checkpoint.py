"""Write a tiny random Gemma in Hugging Face's layout, load it, and look at what it holds.

    python examples/load_checkpoint.py

Needs the safetensors library, to write the file: pip install safetensors
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import tokenizers
from safetensors.numpy import save_file

from langchain_gemma_jax import CheckpointError, load_model

WORDS, WIDTH, HEADS, HEAD_SIZE, FFW, LAYERS = 264, 32, 4, 8, 64, 3

CONFIG = {
    "model_type": "gemma3_text",
    "architectures": ["Gemma3ForCausalLM"],
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "intermediate_size": FFW,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "head_dim": HEAD_SIZE,
    "query_pre_attn_scalar": HEAD_SIZE,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
}


def random_weights() -> dict[str, np.ndarray]:
    """Every tensor that such a model has, by the names that the Hub's checkpoints use."""
    shapes: dict[str, tuple[int, ...]] = {"embed_tokens": (WORDS, WIDTH), "norm": (WIDTH,)}
    for layer in range(LAYERS):
        parts = {
            "self_attn.q_proj": (HEADS * HEAD_SIZE, WIDTH),
            "self_attn.k_proj": (HEAD_SIZE, WIDTH),
            "self_attn.v_proj": (HEAD_SIZE, WIDTH),
            "self_attn.o_proj": (WIDTH, HEADS * HEAD_SIZE),
            "self_attn.q_norm": (HEAD_SIZE,),
            "self_attn.k_norm": (HEAD_SIZE,),
            "mlp.gate_proj": (FFW, WIDTH),
            "mlp.up_proj": (FFW, WIDTH),
            "mlp.down_proj": (WIDTH, FFW),
            "input_layernorm": (WIDTH,),
            "post_attention_layernorm": (WIDTH,),
            "pre_feedforward_layernorm": (WIDTH,),
            "post_feedforward_layernorm": (WIDTH,),
        }
        shapes |= {f"layers.{layer}.{name}": shape for name, shape in parts.items()}
    chance = np.random.default_rng(0)
    return {f"model.{name}.weight": chance.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


def byte_tokenizer() -> tokenizers.Tokenizer:
    """A tokenizer of Gemma's kind that knows no words, only bytes."""
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))  # noqa: S106
    made.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    steps = tokenizers.decoders
    made.decoder = steps.Sequence([steps.Replace("\u2581", " "), steps.ByteFallback(), steps.Fuse()])
    made.add_special_tokens(pieces[:4])
    return made


def main() -> None:
    """Write, load, look; then break the file and load again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        save_file(random_weights(), folder / "model.safetensors")
        byte_tokenizer().save(str(folder / "tokenizer.json"))

        with load_model(folder, dtype="bfloat16") as model:
            config = model.config
            print(f"{config.generation}: {len(config.layers)} layers, {model.nbytes:,} bytes on {model.recipe.dtype}")
            for key, array in model.params["layers"][0].items():
                print(f"  layer 0  {key:15} {array.dtype!s:9} {array.shape}")
            print(model.tokenizer.decode(model.tokenizer.encode_text("Grüezi, 札幌!")))

        # What is wrong with a file is found before any of it is loaded.
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
        try:
            load_model(folder)
        except CheckpointError as error:
            print(f"{type(error).__name__}: expected {error.expected}, found {error.found}")


if __name__ == "__main__":
    main()
