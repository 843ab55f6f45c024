"""GGUF models that see, in two files: a tiny text model, and the encoders of a checkpoint of ``media_models``.

What llama.cpp's converter does to names, orders and numbers is written out here once more, with the names of the
format's own package where it has them, so that a mistake in the package's tables cannot hide behind the same one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np

from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from tests.models.gguf import make
from tests.parity.media_models import MODELS, media_tensor, plain_name
from tests.seeing_folder import golden

MARKS = {
    "gemma3": ("<start_of_image>", "<image_soft_token>", "<end_of_image>"),
    "gemma4": ("<|image>", "<|image|>", "<image|>", "<|audio>", "<|audio|>", "<audio|>", "<|turn>", "<turn|>"),
}
TYPES = {"gemma3": ("gemma3", ""), "gemma4": ("gemma4v", "gemma4a"), "gemma4_unified": ("gemma4uv", "gemma4ua")}
_ENDS = (".weight", ".bias", ".input_max", ".input_min", ".output_max", ".output_min")
_NAMES = gguf.get_tensor_name_map(gguf.MODEL_ARCH.MMPROJ, 3)
_OF_UNIFIED = {  # which the package does not have yet
    "vision_embedder.patch_ln1": "v.patch_norm.1",
    "vision_embedder.patch_dense": "v.patch_embd",
    "vision_embedder.patch_ln2": "v.patch_norm.2",
    "vision_embedder.pos_norm": "v.patch_norm.3",
    "vision_embedder.pos_embedding": "v.position_embd",
    "embed_vision.embedding_projection": "mm.input_projection",
    "embed_audio.embedding_projection": "mm.a.input_projection",
}

Change = Callable[[dict[str, object], dict[str, np.ndarray]], None]


def write_text(path: Path, name: str, seed: int = 0, *, marks: bool = True) -> None:
    """Write a text model with the shapes of one of ``MODELS``."""
    config = config_from_hf(MODELS[name].config, name)
    ple = config.per_layer_input
    special = MARKS[config.generation] if marks else ()
    size = 266 + len(special)
    config = config.replace(
        vocab_size=size,
        norm_offset=0.0,
        per_layer_input=ple and type(ple)(ple.width, size),
    )
    make.write(
        path,
        config,
        make.of_one_kind("F32"),
        seed,
        tokenizer=make.small_tokenizer(*special),
        more=lambda writer: writer.add_chat_template("{{ messages }}"),  # never run: it tells that the model converses
    )


def write_encoders(path: Path, name: str, seed: int = 0, kind: str = "F32", change: Change | None = None) -> None:
    """Write the encoders of one of ``MODELS``, with the weights of a seed, matrices in a format where rows allow it."""
    shapes = {key: tuple(shape) for key, shape in json.loads(str(golden(name)["tensors"])).items()}
    encoders = ("vision_", "audio_", "embed_", "multi_modal")
    tensors = {}
    for key, shape in shapes.items():
        if (plain := plain_name(key)).startswith(encoders):
            stored, value = converted(plain, media_tensor(key, shape, name, seed), name)
            tensors[stored] = value
    said = metadata(name, tensors)
    if change is not None:
        change(said, tensors)
    writer = gguf.GGUFWriter(path, str(said.pop("general.architecture", "clip")))
    for key, value in said.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        writer.add_array(key, value) if isinstance(value, list) else add[type(value)](key, value)
    for stored, value in tensors.items():
        quantized = gguf.GGMLQuantizationType[kind if is_packed(value, kind) else "F32"]
        writer.add_tensor(stored, gguf.quantize(value, quantized), raw_dtype=quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def is_packed(value: np.ndarray, kind: str) -> bool:
    """Return True if a converter writes a tensor in a format."""
    elements, _ = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]]
    return value.ndim > 1 and value.shape[-1] % elements == 0


def converted(plain: str, value: np.ndarray, name: str) -> tuple[str, np.ndarray]:
    """Return a tensor's name in a file, and its values there."""
    kind = str(MODELS[name].config["model_type"])
    value = value.reshape(1) if value.ndim == 0 else value
    if kind == "gemma3":
        stored = plain.replace("_weight", ".weight").replace("vision_tower.", "vision_tower.vision_model.")
        return _known(stored), value + np.float32(1) if "soft_emb_norm" in plain else value
    if kind == "gemma4_unified":
        stem, end = (plain, "weight") if plain.endswith("pos_embedding") else plain.rsplit(".", 1)
        if "pos_embedding" in plain:
            value = value.transpose(1, 0, 2)
        elif "patch_ln1" in plain or plain.endswith("patch_dense.weight"):
            side = round((value.shape[-1] // 3) ** 0.5)
            at = np.arange(3 * side * side)
            color, row, column = at // side**2, at % side**2 // side, at % side
            value = value[..., (row * side + column) * 3 + color]
        return f"{_OF_UNIFIED[stem]}.{end}", np.ascontiguousarray(value)
    if plain.startswith(("audio_tower", "embed_audio")):
        stored = f"model.{plain}".replace("model.audio_tower.", "conformer.").replace(".linear.", ".")
        if stored.endswith("per_dim_scale"):
            return _known(f"{stored}.weight"), np.log1p(np.exp(value.astype(np.float64))).astype(np.float32)
        return _known(stored), value[:, 0] if "depthwise" in stored else value
    stored = f"model.{plain}".replace("model.vision_tower.encoder.", "vision_model.model.")
    stored = stored.replace(".linear.weight", ".weight")
    if stored.endswith("input_proj.weight"):
        side = round((value.shape[1] // 3) ** 0.5)
        value = np.ascontiguousarray(value.reshape(-1, side, side, 3).transpose(0, 3, 1, 2))
    return _known(f"{stored}.weight" if stored.endswith("table") else stored), value


def _known(name: str) -> str:
    found = _NAMES.get_name(name, _ENDS)
    assert found is not None, name
    return found


def metadata(name: str, tensors: Mapping[str, np.ndarray]) -> dict[str, object]:
    """Return the converter's metadata of encoders."""
    config = MODELS[name].config
    vision, kind = config["vision_config"], str(config["model_type"])
    heard = config.get("audio_config")
    sees, hears = TYPES[kind]
    width = config_from_hf(config, name).width
    colors = ([0.5] * 3, [0.5] * 3) if kind == "gemma3" else ([0.0] * 3, [1.0] * 3)
    found: dict[str, object] = {
        "clip.has_vision_encoder": True,
        "clip.projector_type" if kind == "gemma3" else "clip.vision.projector_type": sees,
        "clip.vision.projection_dim": width,
        "clip.vision.image_size": vision.get("image_size", 224),
        "clip.vision.patch_size": vision["patch_size"],
        "clip.vision.embedding_length": vision.get("hidden_size", vision.get("mm_embed_dim")),
        "clip.vision.feed_forward_length": vision.get("intermediate_size", 0),
        "clip.vision.block_count": vision.get("num_hidden_layers", 0),
        "clip.vision.attention.head_count": vision.get("num_attention_heads", 0),
        "clip.vision.attention.layer_norm_epsilon": 1e-6,
        "clip.vision.image_mean": colors[0],
        "clip.vision.image_std": colors[1],
    }
    if kind == "gemma3":
        found["clip.use_gelu"] = True
        found["clip.vision.projector.scale_factor"] = 2
    if heard:
        found |= {
            "clip.has_audio_encoder": True,
            "clip.audio.projector_type": hears,
            "clip.audio.projection_dim": width,
            "clip.audio.embedding_length": heard.get("hidden_size", heard.get("audio_embed_dim")),
            "clip.audio.feed_forward_length": 4 * heard.get("hidden_size", 0),
            "clip.audio.block_count": heard.get("num_hidden_layers", 0),
            "clip.audio.attention.head_count": heard.get("num_attention_heads", 0),
            "clip.audio.attention.layer_norm_epsilon": 1e-6,
            "clip.audio.num_mel_bins": 128,
        }
    return found


GEMMA3 = "gemma-3-4b-vision"


def write(folder, name=GEMMA3, kind="F32", change=None, *, marks=True):
    """Write both files of a model, and return the text's."""
    folder.mkdir(exist_ok=True)
    path = folder / "tiny-Q8_0.gguf"
    write_text(path, name, marks=marks)
    write_encoders(folder / f"mmproj-tiny-{kind}.gguf", name, kind=kind, change=change)
    return path
