"""The projections of a tower's patches to the soft tokens that a text model reads: Gemma 3's and PaliGemma's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import jax

from langchain_gemma_jax.models.seams.media_encoder import Arrays, Tensor, product, rms_norm

_AT = "multi_modal_projector."


class Projection(Protocol):
    """The last part of a vision encoder."""

    def soft_tokens(self, side: int) -> int:
        """Return the number of soft tokens for a square of this many patches a side."""
        ...

    def tensors(self, width: int, text_width: int) -> Mapping[str, Tensor]:
        """Return the arrays that it needs."""
        ...

    def soft(self, arrays: Arrays, x: jax.Array, side: int, eps: float) -> jax.Array:
        """Return the soft tokens of patches ``[patch, width]``, row by row."""
        ...


@dataclass(frozen=True)
class Pooled:
    """Gemma 3's projection: squares of patches are averaged, normed and multiplied with a matrix."""

    tokens_a_side: int

    def soft_tokens(self, side: int) -> int:  # noqa: ARG002  it is the same for each
        return self.tokens_a_side**2

    def tensors(self, width: int, text_width: int) -> Mapping[str, Tensor]:
        return {
            "soft_norm": Tensor(f"{_AT}mm_soft_emb_norm.weight", (width,), added=1.0),
            "project": Tensor(f"{_AT}mm_input_projection_weight", (width, text_width)),
        }

    def soft(self, arrays: Arrays, x: jax.Array, side: int, eps: float) -> jax.Array:
        few, width = self.tokens_a_side, x.shape[1]
        each = side // few
        whole = x.reshape(side, side, width)[: few * each, : few * each]
        soft = whole.reshape(few, each, few, each, width).mean(axis=(1, 3)).reshape(few * few, width)
        return product(rms_norm(soft, arrays["soft_norm"], eps), arrays["project"].T)


@dataclass(frozen=True)
class EachPatch:
    """PaliGemma's projection: each patch is a soft token, by a matrix and a bias."""

    def soft_tokens(self, side: int) -> int:
        return side**2

    def tensors(self, width: int, text_width: int) -> Mapping[str, Tensor]:
        return {
            "project": Tensor(f"{_AT}linear.weight", (text_width, width)),
            "project_bias": Tensor(f"{_AT}linear.bias", (text_width,)),
        }

    def soft(self, arrays: Arrays, x: jax.Array, side: int, eps: float) -> jax.Array:  # noqa: ARG002  they are as they are
        return product(x, arrays["project"], arrays["project_bias"])
