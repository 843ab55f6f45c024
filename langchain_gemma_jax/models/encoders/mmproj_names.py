"""The names and layouts of encoders' tensors in an mmproj file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.seams.media_encoder import LIMITS, Tensor

Numbers: TypeAlias = npt.NDArray[Any]

_ENDS = (".weight", ".bias", *(f".{limit}" for limit in LIMITS))
_LAYER = re.compile(r"(?P<sense>vision|audio)_tower\.(?:encoder\.)?layers\.(?P<index>\d+)\.(?P<part>.+)\.(?P<end>\w+)")

# Hugging Face's → theirs.
_WHOLE: Mapping[str, str] = {
    "vision_tower.std_bias": "v.std_bias",
    "vision_tower.std_scale": "v.std_scale",
    "multi_modal_projector.mm_input_projection_weight": "mm.input_projection.weight",
}
_ONCE: Mapping[str, str] = {
    "vision_tower.embeddings.patch_embedding": "v.patch_embd",
    "vision_tower.embeddings.position_embedding": "v.position_embd",
    "vision_tower.post_layernorm": "v.post_ln",
    "multi_modal_projector.mm_soft_emb_norm": "mm.soft_emb_norm",
    "vision_tower.patch_embedder.input_proj": "v.patch_embd",
    "vision_tower.patch_embedder.position_embedding_table": "v.position_embd",
    "embed_vision.embedding_projection": "mm.input_projection",
    "vision_embedder.patch_ln1": "v.patch_norm.1",
    "vision_embedder.patch_dense": "v.patch_embd",
    "vision_embedder.patch_ln2": "v.patch_norm.2",
    "vision_embedder.pos_embedding": "v.position_embd",
    "vision_embedder.pos_norm": "v.patch_norm.3",
    "audio_tower.subsample_conv_projection.layer0.conv": "a.conv1d.0",
    "audio_tower.subsample_conv_projection.layer0.norm": "a.conv1d.0.norm",
    "audio_tower.subsample_conv_projection.layer1.conv": "a.conv1d.1",
    "audio_tower.subsample_conv_projection.layer1.norm": "a.conv1d.1.norm",
    "audio_tower.subsample_conv_projection.input_proj_linear": "a.input_projection",
    "audio_tower.output_proj": "a.pre_encode.out",
    "embed_audio.embedding_projection": "mm.a.input_projection",
}
_OF_LAYER: Mapping[str, Mapping[str, str]] = {
    "vision": {
        "layer_norm1": "ln1",
        "layer_norm2": "ln2",
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.out_proj": "attn_out",
        "mlp.fc1": "ffn_up",
        "mlp.fc2": "ffn_down",
        "input_layernorm": "ln1",
        "post_attention_layernorm": "attn_post_norm",
        "pre_feedforward_layernorm": "ln2",
        "post_feedforward_layernorm": "ffn_post_norm",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
        "self_attn.o_proj": "attn_out",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    },
    "audio": {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.post": "attn_out",
        "self_attn.relative_k_proj": "attn_k_rel",
        "self_attn.per_dim_scale": "per_dim_scale",
        "norm_pre_attn": "attn_pre_norm",
        "norm_post_attn": "attn_post_norm",
        "norm_out": "ln2",
        "feed_forward1.pre_layer_norm": "ffn_norm",
        "feed_forward1.post_layer_norm": "ffn_post_norm",
        "feed_forward1.ffw_layer_1": "ffn_up",
        "feed_forward1.ffw_layer_2": "ffn_down",
        "feed_forward2.pre_layer_norm": "ffn_norm_1",
        "feed_forward2.post_layer_norm": "ffn_post_norm_1",
        "feed_forward2.ffw_layer_1": "ffn_up_1",
        "feed_forward2.ffw_layer_2": "ffn_down_1",
        "lconv1d.linear_start": "conv_pw1",
        "lconv1d.linear_end": "conv_pw2",
        "lconv1d.depthwise_conv1d": "conv_dw",
        # The names of these two are swapped: converters write them so, and readers swap them back.
        "lconv1d.pre_layer_norm": "conv_norm",
        "lconv1d.conv_norm": "norm_conv",
    },
}
_OTHER_WAY = {"ffn_up": "ffn_down", "ffn_down": "ffn_up"}


@dataclass(frozen=True)
class InFile:
    """One tensor's name and shape in a file, and its conversion to the encoder's layout."""

    name: str
    shape: tuple[int, ...]
    arrange: Callable[[Numbers], Numbers]


@dataclass(frozen=True)
class StoredNames:
    """The naming of one file."""

    swapped: bool = False  # True: the first of a layer's two matrices is called "down", as an early converter did

    def __call__(self, tensor: Tensor) -> InFile:
        """Return the name, shape and layout of a tensor in the file."""
        shape, arrange = _lies(tensor)
        return InFile(self._name(tensor.name), shape, arrange)

    def _name(self, name: str) -> str:
        if name in _WHOLE:
            return _WHOLE[name]
        plain = name.replace(".linear.", ".")
        plain = plain if plain.endswith(_ENDS) else f"{plain}.weight"
        if (match := _LAYER.fullmatch(plain)) is None:
            stem, _, end = plain.rpartition(".")
            return f"{_ONCE[stem]}.{end}"
        part = _OF_LAYER[match["sense"]][match["part"]]
        part = _OTHER_WAY.get(part, part) if self.swapped else part
        return f"{match['sense'][0]}.blk.{match['index']}.{part}.{match['end']}"


def _lies(tensor: Tensor) -> tuple[tuple[int, ...], Callable[[Numbers], Numbers]]:
    """Return the stored shape of a tensor, and its conversion. In files, colors come before rows and columns."""
    shape = tensor.shape
    match tensor.name.rpartition("vision_embedder.")[2]:
        case "vision_tower.patch_embedder.input_proj.weight":
            side = _side(shape[1])
            return (shape[0], 3, side, side), lambda stored: stored.transpose(0, 2, 3, 1)
        case "patch_dense.weight":
            side = _side(shape[1])
            return shape, lambda stored: stored.reshape(-1, 3, side, side).transpose(0, 2, 3, 1)
        case "patch_ln1.weight" | "patch_ln1.bias":
            side = _side(shape[0])
            return shape, lambda stored: stored.reshape(3, side, side).transpose(1, 2, 0)
        case "pos_embedding":
            return (shape[1], shape[0], shape[2]), lambda stored: stored.swapaxes(0, 1)
        case name if name.endswith("per_dim_scale"):
            return shape, _before_softplus
        case name if name.endswith("depthwise_conv1d.weight"):
            return shape, _as_stored
    return tensor.stored or shape or (1,), _as_stored


def _as_stored(stored: Numbers) -> Numbers:
    return stored


def _before_softplus(stored: Numbers) -> Numbers:
    """Return the inverse of ``softplus``, log(1 + exp(x)): files hold its result, and the encoder applies it itself."""
    wide = stored.astype(np.float64)
    inverse: Numbers = (wide + np.log(-np.expm1(-wide))).astype(np.float32)
    return inverse


def _side(numbers: int) -> int:
    """Return the side of a square patch in pixels, for ``numbers`` values in three colors."""
    return math.isqrt(numbers // 3)
