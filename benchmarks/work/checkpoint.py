"""Checkpoints of Gemma 3 270M's shape with random weights, as transformers saves them.

The weights are drawn once, rounded to bfloat16, and written in both dtypes: so an engine computes
with the same numbers whichever file it reads.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

from benchmarks.work.workload import DTYPES, MODEL

CONFIG: Mapping[str, object] = {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "attn_logit_softcapping": None,
    "bos_token_id": 2,
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 640,
    "initializer_range": 0.02,
    "intermediate_size": 2048,
    "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(18)],
    "max_position_embeddings": 32768,
    "model_type": "gemma3_text",
    "num_attention_heads": 4,
    "num_hidden_layers": 18,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rms_norm_eps": 1e-06,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "sliding_window": 512,
    "use_cache": True,
    "vocab_size": 262144,
}
MADE_FROM = "made_from"
SOURCES = (Path(__file__), Path(__file__).parents[1] / "rivals" / "gguf_file.py")

Weights = npt.NDArray[np.generic]


def ensure_checkpoints(folder: Path) -> Path:
    """The folder of the checkpoints below ``folder``, made unless it is there: one subfolder for each dtype."""
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()
    target = folder / MODEL
    marker = target / MADE_FROM
    if marker.exists() and marker.read_text() == wanted:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # Made elsewhere and moved: whoever is interrupted leaves no half of a checkpoint under its name.
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = Path(temporary, MODEL)
        write_checkpoints(made, CONFIG)
        (made / MADE_FROM).write_text(wanted)
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    return target


def write_checkpoints(folder: Path, config: Mapping[str, object], seed: int = 0) -> None:
    """A checkpoint in each dtype, of the same numbers."""
    weights = {name: draw(name, shape, seed) for name, shape in shapes(config)}
    for dtype in DTYPES:
        target = folder / dtype
        target.mkdir(parents=True)
        (target / "config.json").write_text(json.dumps({**config, "torch_dtype": dtype}, indent=2))
        stored = np.dtype(getattr(ml_dtypes, dtype, dtype))
        tensors = {name: array.astype(stored) for name, array in weights.items()}
        save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


def shapes(config: Mapping[str, object]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every tensor of a Gemma 3, by its stored name."""
    sizes = {name: value for name, value in config.items() if isinstance(value, int)}
    width, ffw, head = sizes["hidden_size"], sizes["intermediate_size"], sizes["head_dim"]
    queries, keys = sizes["num_attention_heads"] * head, sizes["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (sizes["vocab_size"], width)
    for layer in range(sizes["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        for name, shape in {
            "input_layernorm": (width,),
            "self_attn.q_proj": (queries, width),
            "self_attn.k_proj": (keys, width),
            "self_attn.v_proj": (keys, width),
            "self_attn.q_norm": (head,),
            "self_attn.k_norm": (head,),
            "self_attn.o_proj": (width, queries),
            "post_attention_layernorm": (width,),
            "pre_feedforward_layernorm": (width,),
            "mlp.gate_proj": (ffw, width),
            "mlp.up_proj": (ffw, width),
            "mlp.down_proj": (width, ffw),
            "post_feedforward_layernorm": (width,),
        }.items():
            yield f"{prefix}.{name}.weight", shape
    yield "model.norm.weight", (width,)


def draw(name: str, shape: tuple[int, ...], seed: int) -> npt.NDArray[np.float32]:
    """Random weights that bfloat16 holds exactly, the same for the same name and seed.

    Of the kind that greedy decoding wanders with: engines that agree on many different tokens do the same work.
    """
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8], "little"))
    if len(shape) == 1:
        # Norms are stored as what is added to one. They differ from it, so that adding it twice or never shows.
        # Those of queries and keys are large: attention then looks at a few tokens and not at the mean of all.
        mean, deviation = (1.0 if name.endswith(("q_norm.weight", "k_norm.weight")) else 0.0), 0.2
    else:
        # A large embedding, which is the output matrix too, would make every token predict itself.
        mean, deviation = 0.0, shape[-1] ** -0.5 * (0.3 if "embed_tokens" in name else 1.0)
    values = np.float32(mean) + np.float32(deviation) * random.standard_normal(shape, dtype=np.float32)
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)
