"""The encoders of Gemma 4 12B, which have no tower: patches and frames are projected directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.media_encoder import (
    Arrays,
    EncoderState,
    EncoderTree,
    Input,
    MediaEncoder,
    Sight,
    Tensor,
    layer_norm,
    product,
    rms_norm,
)

_NORM_EPS = 1e-5  # of the norms with a mean; the configuration has that of the others


@dataclass(frozen=True)
class UnifiedPictures(MediaEncoder):
    """An encoder of patches, one per soft token: normed, projected, and with a position embedding added."""

    budgets: tuple[int, ...]
    patch_numbers: int  # of a patch
    width: int
    places: int  # positions in each direction
    text_width: int
    eps: float
    sight: Sight
    scale: float = 1 / 255

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.budgets

    def inputs(self, size: int) -> Mapping[str, Input]:
        return {"patches": Input((size, self.patch_numbers), "uint8"), "places": Input((size, 2), "int32")}

    def tensors(self) -> EncoderTree:
        at, width = "vision_embedder.", self.width
        begin: dict[str, Tensor] = {}
        for key, size in (("patch_ln1", self.patch_numbers), ("patch_ln2", width), ("pos_norm", width)):
            begin |= {f"{key}_{part}": Tensor(f"{at}{key}.{part}", (size,)) for part in ("weight", "bias")}
        begin |= {
            "dense": Tensor(f"{at}patch_dense.weight", (width, self.patch_numbers)),
            "dense_bias": Tensor(f"{at}patch_dense.bias", (width,)),
            "places": Tensor(f"{at}pos_embedding", (self.places, 2, width)),
        }
        name = "embed_vision.embedding_projection.weight"
        return EncoderTree(begin, [], {"project": Tensor(name, (self.text_width, width))})

    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        def norm(x: jax.Array, key: str) -> jax.Array:
            return layer_norm(x, arrays[f"{key}_weight"], arrays[f"{key}_bias"], _NORM_EPS)

        x = norm(inputs["patches"].astype(jnp.float32) * self.scale, "patch_ln1")
        x = norm(product(x, arrays["dense"], arrays["dense_bias"]), "patch_ln2")
        return {"x": norm(x + placed(arrays["places"].swapaxes(0, 1), inputs["places"]), "pos_norm")}

    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        return product(rms_norm(state["x"], None, self.eps), arrays["project"])


@dataclass(frozen=True)
class UnifiedSounds(MediaEncoder):
    """An encoder of frames of samples, one per soft token: normed and projected."""

    frames: tuple[int, ...]
    frame: int  # samples
    text_width: int
    eps: float
    sight: Sight = Sight.CAUSAL

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.frames

    def inputs(self, size: int) -> Mapping[str, Input]:
        return {"frames": Input((size, self.frame), "float32")}

    def tensors(self) -> EncoderTree:
        projection = Tensor("embed_audio.embedding_projection.weight", (self.text_width, self.frame))
        return EncoderTree({}, [], {"project": projection})

    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        del arrays  # there are none
        return {"x": inputs["frames"]}

    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        return product(rms_norm(state["x"], None, self.eps), arrays["project"])


def placed(table: jax.Array, places: jax.Array) -> jax.Array:
    """Look up places ``[patch, axis]`` in a table ``[axis, place, width]``; zeros for padding, which is at -1."""
    rows = [table[axis][jnp.maximum(places[:, axis], 0)].astype(jnp.float32) for axis in range(2)]
    return jnp.where(places[:, :1] >= 0, rows[0], 0.0) + jnp.where(places[:, 1:] >= 0, rows[1], 0.0)
