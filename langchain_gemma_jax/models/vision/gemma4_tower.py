"""Gemma 4's vision tower: patches of a picture of any shape, with positions from tables and rotary embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.seams.media_encoder import (
    Arrays,
    EncoderState,
    EncoderTree,
    Input,
    MediaEncoder,
    Sight,
    Tensor,
    attend,
    clipped,
    limits,
    product,
    rms_norm,
    wide,
)
from langchain_gemma_jax.models.vision.unified import placed

_NORMS = {
    "attn_norm": "input_layernorm",
    "post_attn_norm": "post_attention_layernorm",
    "ffw_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


@dataclass(frozen=True)
class Gemma4Tower(MediaEncoder):
    """A tower, followed by the average over each soft token's patches and a projection."""

    budgets: tuple[int, ...]
    patch: int
    pool: int
    width: int
    depth: int
    heads: int
    kv_heads: int
    head_dim: int
    ffw_width: int
    places: int
    theta: float
    eps: float
    clipped: bool
    standardized: bool
    text_width: int
    sight: Sight
    scale: float = 1 / 255

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.budgets

    @property
    def layers(self) -> int:
        return self.depth

    def inputs(self, size: int) -> Mapping[str, Input]:
        patches = size * self.pool**2
        return {"patches": Input((patches, 3 * self.patch**2), "uint8"), "places": Input((patches, 2), "int32")}

    def tensors(self) -> EncoderTree:
        at, width = "vision_tower.", self.width
        inner, shared = self.heads * self.head_dim, self.kv_heads * self.head_dim
        shapes = {
            "q": ("self_attn.q_proj", inner, width),
            "k": ("self_attn.k_proj", shared, width),
            "v": ("self_attn.v_proj", shared, width),
            "out": ("self_attn.o_proj", width, inner),
            "gate": ("mlp.gate_proj", self.ffw_width, width),
            "up": ("mlp.up_proj", self.ffw_width, width),
            "down": ("mlp.down_proj", width, self.ffw_width),
        }

        def layer(index: int) -> dict[str, Tensor]:
            here = f"{at}encoder.layers.{index}."
            arrays = {key: Tensor(f"{here}{name}.weight", (width,)) for key, name in _NORMS.items()}
            for key in "qk":
                arrays[f"{key}_norm"] = Tensor(f"{here}self_attn.{key}_norm.weight", (self.head_dim,))
            for key, (name, outputs, inputs) in shapes.items():
                arrays[key] = Tensor(f"{here}{name}.linear.weight", (outputs, inputs))
                if self.clipped:
                    arrays |= limits(key, f"{here}{name}")
            return arrays

        end = {"project": Tensor("embed_vision.embedding_projection.weight", (self.text_width, width))}
        if self.standardized:
            end |= {key: Tensor(f"{at}{key}", (width,)) for key in ("std_bias", "std_scale")}
        begin = {
            "patch": Tensor(f"{at}patch_embedder.input_proj.weight", (width, 3 * self.patch**2)),
            "places": Tensor(f"{at}patch_embedder.position_embedding_table", (2, self.places, width)),
        }
        return EncoderTree(begin, [layer(index) for index in range(self.depth)], end)

    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        pixels = 2.0 * (inputs["patches"].astype(jnp.float32) * self.scale - 0.5)
        places = inputs["places"]
        return {"x": product(pixels, arrays["patch"]) + placed(arrays["places"], places), "places": places}

    def layer(self, arrays: Arrays, state: EncoderState) -> EncoderState:
        x, places = state["x"], state["places"]
        h = rms_norm(x, arrays["attn_norm"], self.eps)
        queries, keys, values = (clipped(h, arrays, key).reshape(len(x), -1, self.head_dim) for key in "qkv")
        turn = self._turns(places)
        queries = self._turned(rms_norm(queries, arrays["q_norm"], self.eps), turn)
        keys = self._turned(rms_norm(keys, arrays["k_norm"], self.eps), turn)
        values = rms_norm(values, None, self.eps)
        group = self.heads // self.kv_heads
        keys, values = jnp.repeat(keys, group, axis=1), jnp.repeat(values, group, axis=1)
        real = places[:, 0] >= 0
        mixed = attend(queries, keys, values, 1.0, real, arrays["q"].dtype)
        x = x + rms_norm(clipped(mixed, arrays, "out"), arrays["post_attn_norm"], self.eps)
        h = rms_norm(x, arrays["ffw_norm"], self.eps)
        h = jax.nn.gelu(clipped(h, arrays, "gate"), approximate=True) * clipped(h, arrays, "up")
        x = x + rms_norm(clipped(h, arrays, "down"), arrays["post_ffw_norm"], self.eps)
        return {"x": x, "places": places}

    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        places, count = state["places"], len(state["x"]) // self.pool**2
        real = places[:, :1] >= 0
        x = jnp.where(real, state["x"], 0.0)
        columns = jnp.max(places[:, 0]) + 1
        at = jnp.maximum(places, 0) // self.pool
        soft = at[:, 0] + (columns // self.pool) * at[:, 1]
        x = jax.ops.segment_sum(x, soft, num_segments=count) * (self.width**0.5 / self.pool**2)
        if self.standardized:
            x = (x - wide(arrays["std_bias"], x)) * wide(arrays["std_scale"], x)
        return product(rms_norm(x, None, self.eps), arrays["project"])

    def _turns(self, places: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return sines and cosines ``[patch, 1, axis, a quarter of a head]``."""
        half = self.head_dim // 2
        exponents = np.arange(0, half, 2, dtype=np.float32) / np.float32(half)
        frequencies = jnp.asarray(1.0 / np.float32(self.theta) ** exponents)
        angles = places[:, :, None].astype(jnp.float32) * frequencies[None, None]
        return jnp.sin(angles)[:, None], jnp.cos(angles)[:, None]

    def _turned(self, x: jax.Array, turn: tuple[jax.Array, jax.Array]) -> jax.Array:
        """Rotate the first half of each head by the column, the second by the row."""
        sin, cos = turn
        halves = x.reshape(*x.shape[:2], 2, self.head_dim // 2)
        first, second = jnp.split(halves, 2, axis=-1)
        rotated = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
        return rotated.reshape(x.shape)
