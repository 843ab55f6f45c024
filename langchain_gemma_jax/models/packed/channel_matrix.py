"""Matrices of integers with one scale per output, whose inputs and outputs are rounded to grids.

A mobile release was trained with its activations on grids of 256 steps, so the rounding is a part of the model: without
it, the results differ. Products are between integers: a matrix' numbers, and its inputs as steps of a grid. They are
exact in any dtype here, and so are their sums in float32. So a product is rounded once only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.packed.tiles import MatrixParts, in_tiles
from langchain_gemma_jax.models.seams.weights import Packed, Plan

LEAST, MOST = -128.0, 127.0  # steps of a grid


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["numbers", "scales", "grid_in", "grid_out"],
    meta_fields=["bits", "dtype", "tiled"],
)
@dataclass(frozen=True)
class ChannelMatrix(Packed):
    """A matrix of numbers of 2, 4 or 8 bits. A matrix whose rows are only looked up may have several scales per row."""

    numbers: Any  # [out, byte]: uint8, a row's first number in the lowest bits; with 8 bits int8, [out, in]
    scales: Any  # [out, group] float32
    grid_in: Any  # (): step size of the inputs' grid; 0: inputs are not rounded
    grid_out: Any  # (): step size of the outputs' grid; 0: outputs are not rounded
    bits: int
    dtype: str  # of products
    tiled: bool = True  # True: unpacked tile by tile; False: all at once

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:  # noqa: ARG002  for others
        rows = x.reshape(-1, x.shape[-1]).astype(jnp.float32)
        steps, size = _on_grid(rows, self.grid_in)
        parts = (self.numbers,)
        sums = in_tiles(parts, steps, self.dtype, self._multiplied) if self.tiled else self._multiplied(parts, steps)
        out, step = _on_grid((sums * (self.scales * size)).T, self.grid_out)
        return (out * step).reshape(*x.shape[:-1], out.shape[-1])

    def rows(self, ids: jax.Array) -> jax.Array:
        numbers = jnp.stack(self._whole(self.numbers[ids]), axis=-1).astype(jnp.float32)
        scales = self.scales[ids]
        whole: jax.Array = (numbers.reshape(*scales.shape, -1) * scales[..., None]).reshape(*ids.shape, -1)
        return whole

    def matrix_at(self, index: jax.Array) -> ChannelMatrix:
        numbers, scales, grid_in, grid_out = (
            part[index] for part in (self.numbers, self.scales, self.grid_in, self.grid_out)
        )
        return ChannelMatrix(numbers, scales, grid_in, grid_out, self.bits, self.dtype, self.tiled)

    def _multiplied(self, parts: MatrixParts, rows: jax.Array) -> jax.Array:
        """Return the unscaled products of some of the matrix' outputs with all rows: float32 ``[out, row]``."""
        precision = jax.lax.Precision.HIGHEST if self.dtype == "float32" else jax.lax.Precision.DEFAULT
        slices = self._whole(parts[0])
        products = [
            jnp.einsum(
                "oi,mi->om",
                each.astype(self.dtype),
                rows[:, index :: len(slices)].astype(self.dtype),
                precision=precision,
                preferred_element_type=jnp.float32,
            )
            for index, each in enumerate(slices)
        ]
        return sum(products[1:], products[0])

    def _whole(self, numbers: jax.Array) -> list[jax.Array]:
        """Unpack the numbers in bytes: the first number of every byte, then the second of every byte, ..."""
        if self.bits == 8:
            return [numbers]
        middle, mask = jnp.int8(1 << (self.bits - 1)), jnp.uint8((1 << self.bits) - 1)
        shifts = (jnp.uint8(shift) for shift in range(0, 8, self.bits))
        return [((numbers >> shift) & mask).astype(jnp.int8) - middle for shift in shifts]


def _on_grid(x: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return each number as steps of a grid, and the step size. Without a grid: the numbers, and 1."""
    rounded = size != 0
    step = jnp.where(rounded, size, jnp.ones_like(size))
    steps = jnp.clip(jnp.round(x / step), LEAST, MOST)
    return jnp.where(rounded, steps, x), step
