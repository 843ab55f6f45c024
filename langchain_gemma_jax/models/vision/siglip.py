"""The vision tower of Gemma 3 and PaliGemma: SigLIP over one square picture."""

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
    attend,
    layer_norm,
    product,
    wide,
)
from langchain_gemma_jax.models.vision.projections import Projection


@dataclass(frozen=True)
class Siglip(MediaEncoder):
    """A SigLIP tower, followed by a projection of its patches to soft tokens."""

    side: int  # pixels
    patch: int  # pixels of a patch's side
    width: int
    depth: int
    heads: int
    ffw_width: int
    eps: float
    projection: Projection
    text_width: int
    scale: float = 1 / 255  # pixels are multiplied by it, ...
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)  # ... less the mean, ...
    deviation: tuple[float, ...] = (0.5, 0.5, 0.5)  # ... over the deviation of each color
    sight: Sight = Sight.EVERYWHERE
    most_words: int = 0

    @property
    def patches_a_side(self) -> int:
        return self.side // self.patch

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.side,)

    @property
    def layers(self) -> int:
        return self.depth

    def soft_tokens(self, size: int) -> int:
        del size  # there is one
        return self.projection.soft_tokens(self.patches_a_side)

    @property
    def fewest_soft_tokens(self) -> int:
        return self.most_soft_tokens

    def inputs(self, size: int) -> Mapping[str, Input]:
        return {"pixels": Input((size, size, 3), "uint8")}

    def tensors(self) -> EncoderTree:
        width, at = self.width, "vision_tower."

        def affine(name: str, key: str, *shape: int) -> dict[str, Tensor]:
            return {
                key: Tensor(f"{name}.weight", shape),
                f"{key}_bias": Tensor(f"{name}.bias", shape[:1]),
            }

        def layer(index: int) -> dict[str, Tensor]:
            here = f"{at}encoder.layers.{index}."
            arrays = affine(f"{here}layer_norm1", "attn_norm", width) | affine(f"{here}layer_norm2", "ffw_norm", width)
            for key, name in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("out", "out_proj")):
                arrays |= affine(f"{here}self_attn.{name}", key, width, width)
            arrays |= affine(f"{here}mlp.fc1", "up", self.ffw_width, width)
            return arrays | affine(f"{here}mlp.fc2", "down", width, self.ffw_width)

        colors = 3 * self.patch**2
        patches = Tensor(f"{at}embeddings.patch_embedding.weight", (width, colors), (width, 3, self.patch, self.patch))
        return EncoderTree(
            {
                "patch": patches,
                "patch_bias": Tensor(f"{at}embeddings.patch_embedding.bias", (width,)),
                "places": Tensor(f"{at}embeddings.position_embedding.weight", (self.patches_a_side**2, width)),
            },
            [layer(index) for index in range(self.depth)],
            affine(f"{at}post_layernorm", "norm", width) | dict(self.projection.tensors(width, self.text_width)),
        )

    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        side, patch = self.patches_a_side, self.patch
        pixels = inputs["pixels"][: side * patch, : side * patch].astype(jnp.float32) * self.scale
        mean, deviation = (wide(jnp.asarray(each, jnp.float32), pixels) for each in (self.mean, self.deviation))
        pixels = (pixels - mean) / deviation
        # [row of patches, its row, column of patches, its column, color]
        patches = pixels.reshape(side, patch, side, patch, 3).transpose(0, 2, 4, 1, 3)
        x = product(patches.reshape(side * side, 3 * patch * patch), arrays["patch"], arrays["patch_bias"])
        return {"x": x + arrays["places"].astype(jnp.float32)}

    def layer(self, arrays: Arrays, state: EncoderState) -> EncoderState:
        x = state["x"]
        h = layer_norm(x, arrays["attn_norm"], arrays["attn_norm_bias"], self.eps)
        head_dim = self.width // self.heads
        queries, keys, values = (
            product(h, arrays[key], arrays[f"{key}_bias"]).reshape(-1, self.heads, head_dim) for key in "qkv"
        )
        mixed = attend(queries, keys, values, head_dim**-0.5, dtype=arrays["q"].dtype)
        x = x + product(mixed, arrays["out"], arrays["out_bias"])
        h = layer_norm(x, arrays["ffw_norm"], arrays["ffw_norm_bias"], self.eps)
        h = jax.nn.gelu(product(h, arrays["up"], arrays["up_bias"]), approximate=True)
        return {"x": x + product(h, arrays["down"], arrays["down_bias"])}

    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        x = layer_norm(state["x"], arrays["norm"], arrays["norm_bias"], self.eps)
        return self.projection.soft(arrays, x, self.patches_a_side, self.eps)
