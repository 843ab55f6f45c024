"""The vision tower in an Orbax checkpoint of a Gemma 3: found by its arrays, and read when the first picture comes.

In the library's shapes W is the tower's width, N its heads, H a head's size, F its feed-forward's width, P the pixels
of a patch's side and T the text tower's width:

=============================================================  =============================
embedding                                                      /kernel [P, P, 3, W], /bias
pos_embedding                                                  [1, patches, W]
Transformer/encoderblock_i/LayerNorm_0, LayerNorm_1            /scale, /bias [W]
Transformer/encoderblock_i/MultiHeadDotProductAttention_0/     query, key, value: /kernel [W, N, H], /bias [N, H]
                                                               out: /kernel [N, H, W], /bias [W]
Transformer/encoderblock_i/MlpBlock_0/Dense_0, Dense_1         /kernel [W, F] and [F, W], /bias
Transformer/encoder_norm                                       /scale, /bias [W]
mm_soft_embedding_norm                                         /scale [W]
mm_input_projection                                            /w [W, T]
=============================================================  =============================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.official.orbax import OrbaxSource
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.seams.media_encoder import Tensor
from langchain_gemma_jax.models.seams.tensor_source import TensorSource
from langchain_gemma_jax.models.tokenizer import Tokenizer
from langchain_gemma_jax.models.vision.media_config import MediaFiles, senses_of
from langchain_gemma_jax.models.vision.model_media import ModelMedia, ReadsTensor

CONFIG = "config.json"
PUBLISHED_TOKENS = 256  # of a picture, where no config.json says otherwise
_BLOCK = "Transformer/encoderblock_"
_WHOLE: Mapping[str, str] = {
    "vision_tower.embeddings.patch_embedding.weight": "embedding/kernel",
    "vision_tower.embeddings.patch_embedding.bias": "embedding/bias",
    "vision_tower.embeddings.position_embedding.weight": "pos_embedding",
    "vision_tower.post_layernorm.weight": "Transformer/encoder_norm/scale",
    "vision_tower.post_layernorm.bias": "Transformer/encoder_norm/bias",
    "multi_modal_projector.mm_soft_emb_norm.weight": "mm_soft_embedding_norm/scale",
    "multi_modal_projector.mm_input_projection_weight": "mm_input_projection/w",
}
_OF_LAYER: Mapping[str, str] = {
    "layer_norm1": "LayerNorm_0",
    "layer_norm2": "LayerNorm_1",
    "self_attn.q_proj": "MultiHeadDotProductAttention_0/query",
    "self_attn.k_proj": "MultiHeadDotProductAttention_0/key",
    "self_attn.v_proj": "MultiHeadDotProductAttention_0/value",
    "self_attn.out_proj": "MultiHeadDotProductAttention_0/out",
    "mlp.fc1": "MlpBlock_0/Dense_0",
    "mlp.fc2": "MlpBlock_0/Dense_1",
}
_LAYER = re.compile(r"vision_tower\.encoder\.layers\.(\d+)\.(.+)\.(weight|bias)")


def orbax_media(
    folder: Path, source: TensorSource, config: ModelConfig, tokenizer: Tokenizer, files: Unchanged
) -> ModelMedia | None:
    """Return the vision encoder of the model in a folder, by its open checkpoint. None: the model reads text alone.

    Raises:
        ConfigError, TensorMismatchError, UnsupportedModelError: the encoder cannot be used.
    """
    shapes = source.tower_shapes
    if config.generation != "gemma3" or "pos_embedding" not in shapes:
        return None
    own = read_object(real_file(folder, CONFIG), folder / CONFIG) if (folder / CONFIG).is_file() else {}
    vision = {"model_type": "siglip_vision_model", **_shapes(shapes, source.location)}
    raw = {"mm_tokens_per_image": PUBLISHED_TOKENS, **own, "model_type": "gemma3", "vision_config": vision}
    where = f"{source.location} (its arrays in the words of config.json)"
    senses = senses_of(MediaFiles(raw, {}, where, config, tokenizer.encode_text))
    if senses is None:
        return None
    for encoder in senses.encoders:
        for tensor in (each for part in encoder.tensors().parts() for each in part.values()):
            _check(shapes, source.location, tensor)
    return ModelMedia(senses.support, senses.encoders, partial(_reader, Path(source.location), files))


def _shapes(shapes: Mapping[str, tuple[int, ...]], location: str) -> dict[str, int]:
    """Return the fields of a tower's configuration that its shapes show."""

    def shape(name: str, rank: int) -> tuple[int, ...]:
        stored = shapes.get(name, ())
        if len(stored) != rank:
            raise TensorMismatchError(location, f"an array {name} with {rank} axes", f"the shape {list(stored)}")
        return stored

    patch, _, _, width = shape("embedding/kernel", 4)
    _, patches, _ = shape("pos_embedding", 3)
    _, heads, _ = shape(f"{_BLOCK}0/MultiHeadDotProductAttention_0/query/kernel", 3)
    _, ffw = shape(f"{_BLOCK}0/MlpBlock_0/Dense_0/kernel", 2)
    return {
        "image_size": math.isqrt(patches) * patch,
        "patch_size": patch,
        "hidden_size": width,
        "intermediate_size": ffw,
        "num_attention_heads": heads,
        "num_hidden_layers": len({name.split("/")[1] for name in shapes if name.startswith(_BLOCK)}),
    }


def _check(shapes: Mapping[str, tuple[int, ...]], location: str, tensor: Tensor) -> None:
    name = _name(tensor)
    if name not in shapes:
        raise TensorMismatchError(location, f"an array {name}", "none")
    if math.prod(shapes[name]) != math.prod(tensor.shape):
        found = f"one of {list(shapes[name])}"
        raise TensorMismatchError(location, f"an array {name} of {math.prod(tensor.shape):,} numbers", found)


def _name(tensor: Tensor) -> str:
    if (match := _LAYER.fullmatch(tensor.name)) is None:
        return _WHOLE[tensor.name]
    index, part, end = match.groups()
    end = end if end == "bias" else "scale" if part.startswith("layer_norm") else "kernel"
    return f"{_BLOCK}{index}/{_OF_LAYER[part]}/{end}"


def _arranged(tensor: Tensor, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a stored array in the encoder's layout. Files have inputs first, and patches as row, column, color."""
    if tensor.name.endswith("patch_embedding.weight"):
        return stored.transpose(3, 2, 0, 1)
    if tensor.added:
        return stored.astype(np.float32) + np.float32(tensor.added)
    if _LAYER.fullmatch(tensor.name) and len(tensor.shape) == 2:
        outputs, inputs = tensor.shape
        return stored.reshape(inputs, outputs).T
    return stored


@contextmanager
def _reader(checkpoint: Path, files: Unchanged) -> Iterator[ReadsTensor]:
    files.check()
    with OrbaxSource(checkpoint) as source:
        yield lambda tensor: _arranged(tensor, np.asarray(source.read_of_pictures(_name(tensor))))
        files.check()
