"""Matrices in blocks with a factor on top, as files of NVFP4 have them.

The scales of NVFP4's blocks are floats of eight bits, from 2^-9 to 448. What is left of a matrix' scale is one float32
in a tensor of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.seams.weights import Packed, Plan


@partial(jax.tree_util.register_dataclass, data_fields=["blocks", "factors"], meta_fields=[])
@dataclass(frozen=True)
class Scaled(Packed):
    """A matrix in one block format whose rows are multiplied by a factor each, or a stack of them."""

    blocks: BlockMatrix
    factors: Any  # [..., out] float32: outputs of several stored matrices may be one matrix here

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        out = self.blocks.product(x, plan, real)
        scaled: jax.Array = out * self.factors.reshape(*[1] * (out.ndim - 1), -1)
        return scaled

    def rows(self, ids: jax.Array) -> jax.Array:
        rows: jax.Array = self.blocks.rows(ids) * self.factors[ids][..., None]
        return rows

    def matrix_at(self, index: jax.Array) -> Scaled:
        return Scaled(self.blocks.matrix_at(index), self.factors[index])


def scaled_specs(blocks: BlockMatrix, outputs: int, dense: ArraySpec) -> Scaled:
    """Return the specs of a run of a matrix' outputs with a factor each. Where inputs are divided, these are whole."""
    axis = len(dense.shape) - 1
    sections = () if dense.along == axis else dense.sections
    shape = (*dense.shape[:-2], outputs)
    factors = ArraySpec(shape, "float32", axes=dense.axes[:-1], along=dense.along % axis, sections=sections)
    return Scaled(blocks, factors)
