"""The conformer of Gemma 4's small sizes, whose layers attend to about the last half second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.hearing.spectrogram import HALVED, PITCHES
from langchain_gemma_jax.models.seams.media_encoder import (
    Arrays,
    EncoderState,
    EncoderTree,
    Input,
    MediaEncoder,
    Sight,
    Tensor,
    clipped,
    layer_norm,
    limits,
    product,
    rms_norm,
)

_EXACT = jax.lax.Precision.HIGHEST
_FURTHEST = 1e10  # activations are clipped to it
_UNSEEN = -1e9  # scores of masked tokens
_NORM_EPS = 1e-6  # of norms that the configuration has no epsilon for
_CHANNELS = ("NCHW", "OIHW", "NCHW")


@dataclass(frozen=True)
class Conformer(MediaEncoder):
    """An encoder that halves a spectrogram twice, runs layers with a short look-back, and projects the result."""

    tokens: tuple[int, ...]
    width: int
    depth: int
    heads: int
    channels: tuple[int, int]
    kernel: int  # of the convolution over time
    back: int  # tokens that each token sees, itself included
    reach: int  # number of relative distances with a position embedding
    cap: float
    residual: float
    eps: float
    clipped: bool
    output_width: int
    text_width: int
    sight: Sight = Sight.CAUSAL

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.tokens

    @property
    def layers(self) -> int:
        return self.depth

    def inputs(self, size: int) -> Mapping[str, Input]:
        frames = size * HALVED
        return {"spectrogram": Input((frames, PITCHES), "float32"), "real": Input((frames,), "int32")}

    def tensors(self) -> EncoderTree:
        at, width = "audio_tower.", self.width
        first, second = self.channels
        convolutions = f"{at}subsample_conv_projection."
        begin = {
            "conv0": Tensor(f"{convolutions}layer0.conv.weight", (first, 1, 3, 3)),
            "conv0_norm": Tensor(f"{convolutions}layer0.norm.weight", (first,)),
            "conv1": Tensor(f"{convolutions}layer1.conv.weight", (second, first, 3, 3)),
            "conv1_norm": Tensor(f"{convolutions}layer1.norm.weight", (second,)),
            "project": Tensor(f"{convolutions}input_proj_linear.weight", (width, PITCHES // HALVED * second)),
        }

        def layer(index: int) -> dict[str, Tensor]:
            here, arrays = f"{at}layers.{index}.", dict[str, Tensor]()

            def matrix(key: str, name: str, outputs: int, inputs: int) -> None:
                arrays[key] = Tensor(f"{here}{name}.linear.weight", (outputs, inputs))
                arrays.update(limits(key, f"{here}{name}") if self.clipped else {})

            for number in "12":
                name = f"feed_forward{number}"
                matrix(f"ffw{number}_up", f"{name}.ffw_layer_1", 4 * width, width)
                matrix(f"ffw{number}_down", f"{name}.ffw_layer_2", width, 4 * width)
                for side in ("pre", "post"):
                    arrays[f"ffw{number}_{side}"] = Tensor(f"{here}{name}.{side}_layer_norm.weight", (width,))
            for key, name in (("q", "q_proj"), ("k", "k_proj"), ("v", "v_proj"), ("post", "post")):
                matrix(key, f"self_attn.{name}", width, width)
            arrays["relative"] = Tensor(f"{here}self_attn.relative_k_proj.weight", (width, width))
            arrays["scale"] = Tensor(f"{here}self_attn.per_dim_scale", (width // self.heads,))
            matrix("conv_in", "lconv1d.linear_start", 2 * width, width)
            matrix("conv_out", "lconv1d.linear_end", width, width)
            arrays["conv"] = Tensor(
                f"{here}lconv1d.depthwise_conv1d.weight", (width, self.kernel), (width, 1, self.kernel)
            )
            for key, name in (
                ("conv_pre", "lconv1d.pre_layer_norm"),
                ("conv_norm", "lconv1d.conv_norm"),
                ("attn_pre", "norm_pre_attn"),
                ("attn_post", "norm_post_attn"),
                ("last", "norm_out"),
            ):
                arrays[key] = Tensor(f"{here}{name}.weight", (width,))
            return arrays

        end = {
            "output": Tensor(f"{at}output_proj.weight", (self.output_width, width)),
            "output_bias": Tensor(f"{at}output_proj.bias", (self.output_width,)),
            "project": Tensor("embed_audio.embedding_projection.weight", (self.text_width, self.output_width)),
        }
        return EncoderTree(begin, [layer(index) for index in range(self.depth)], end)

    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        x, real = inputs["spectrogram"][None, None], inputs["real"]  # [1, channel, frame, pitch]
        for key in ("conv0", "conv1"):
            weight = arrays[key].astype(jnp.float32)
            x = x * real[None, None, :, None].astype(jnp.float32)
            x = jax.lax.conv_general_dilated(
                x, weight, (2, 2), ((1, 1), (1, 1)), dimension_numbers=_CHANNELS, precision=_EXACT
            )
            normed = layer_norm(x.transpose(0, 2, 3, 1), arrays[f"{key}_norm"], None, self.eps)
            x, real = jax.nn.relu(normed).transpose(0, 3, 1, 2), real[::2]
        x = x[0].transpose(1, 2, 0)  # [token, pitch, channel]
        return {"x": product(x.reshape(len(x), -1), arrays["project"]), "real": real}

    def layer(self, arrays: Arrays, state: EncoderState) -> EncoderState:
        x, real = self._feed_forward(state["x"], arrays, "ffw1"), state["real"]
        h = rms_norm(_cut(x), arrays["attn_pre"], _NORM_EPS)
        x = x + rms_norm(_cut(self._attention(h, arrays, real)), arrays["attn_post"], _NORM_EPS)
        x = x + self._convolution(x, arrays)
        x = self._feed_forward(x, arrays, "ffw2")
        return {"x": rms_norm(_cut(x), arrays["last"], _NORM_EPS), "real": real}

    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        x = product(state["x"], arrays["output"], arrays["output_bias"])
        return product(rms_norm(x, None, self.eps), arrays["project"])

    def _feed_forward(self, x: jax.Array, arrays: Arrays, key: str) -> jax.Array:
        h = rms_norm(_cut(x), arrays[f"{key}_pre"], _NORM_EPS)
        h = clipped(jax.nn.silu(clipped(h, arrays, f"{key}_up")), arrays, f"{key}_down")
        return x + rms_norm(_cut(h), arrays[f"{key}_post"], _NORM_EPS) * self.residual

    def _attention(self, h: jax.Array, arrays: Arrays, real: jax.Array) -> jax.Array:
        tokens, head_dim = len(h), self.width // self.heads
        queries, keys, values = (clipped(h, arrays, key).reshape(tokens, self.heads, head_dim) for key in "qkv")
        factor = jax.nn.softplus(arrays["scale"]) * (head_dim**-0.5 / math.log(2))
        queries = queries * factor[None, None]
        keys = keys * (math.log(1 + math.e) / math.log(2))
        relative = product(jnp.asarray(self._distances()), arrays["relative"]).reshape(-1, self.heads, head_dim)
        by_content = jnp.einsum("qhd,khd->hqk", queries, keys, precision=_EXACT)
        by_distance = jnp.einsum("qhd,rhd->hqr", queries, relative, precision=_EXACT)
        apart = jnp.arange(tokens)[:, None] - jnp.arange(tokens)[None, :]  # [query, key]
        index = jnp.broadcast_to(jnp.clip(apart, 0, self.reach - 1)[None], by_content.shape)
        scores = by_content + jnp.take_along_axis(by_distance, index, axis=2)
        scores = jnp.tanh(scores / self.cap) * self.cap
        heard = (apart >= 0) & (apart < self.back) & (real[None, :] > 0)
        shares = jax.nn.softmax(jnp.where(heard[None], scores, _UNSEEN), axis=-1)
        mixed = jnp.einsum("hqk,khd->qhd", shares, values, precision=_EXACT)
        return clipped(mixed.reshape(tokens, self.width), arrays, "post")

    def _convolution(self, x: jax.Array, arrays: Arrays) -> jax.Array:
        h = clipped(rms_norm(x, arrays["conv_pre"], self.eps), arrays, "conv_in")
        kept, gate = jnp.split(h, 2, axis=-1)
        h = jnp.pad(kept * jax.nn.sigmoid(gate), ((self.kernel - 1, 0), (0, 0)))
        weight = arrays["conv"].astype(jnp.float32)
        h = sum((h[step : step + len(x)] * weight[None, :, step] for step in range(self.kernel)), jnp.zeros_like(x))
        return clipped(jax.nn.silu(rms_norm(_cut(h), arrays["conv_norm"], self.eps)), arrays, "conv_out")

    def _distances(self) -> np.ndarray:
        """Return a vector for each distance: sines, then cosines, from fast to slow."""
        half = self.width // 2
        rates = np.exp(np.arange(half) * -(math.log(10_000.0) / max(half - 1, 1)))
        angles = np.arange(self.reach)[:, None] * rates[None, :]
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _cut(x: jax.Array) -> jax.Array:
    return jnp.clip(x, -_FURTHEST, _FURTHEST)
