"""Matrices in blocks as weights: their products and their rows.

A product in tiles never unpacks more of a matrix than one tile (``tiles.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels.products import can_multiply, multiply
from langchain_gemma_jax.models.packed.activations import in_eight_bits
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, BlockFormat, numbers
from langchain_gemma_jax.models.packed.tiles import in_tiles
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForm, BlockForms
from langchain_gemma_jax.models.seams.weights import Packed, Plan


@partial(jax.tree_util.register_dataclass, data_fields=["parts"], meta_fields=["kind", "dtype", "forms"])
@dataclass(frozen=True)
class BlockMatrix(Packed):
    """A matrix in one block format, or a stack of them."""

    parts: tuple[Any, ...]  # as ``BLOCK_FORMATS[kind].parts``, each [..., out, block, *shape of the part]
    kind: str
    dtype: str  # of products
    forms: BlockForms = DEFAULT

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:  # noqa: ARG002  the plan is
        """Return ``x [..., in]`` times the matrix. The plan is ignored: it is for dense matrices."""
        rows = x.reshape(-1, x.shape[-1])
        count = rows.shape[0]
        rounded = self.forms.activations == "int8"
        form = self.forms.form(count)
        if form is BlockForm.KERNEL and can_multiply(count, rounded=rounded):
            out = multiply(rows, self.parts, self.kind, rounded=rounded, real=real)
            return out.reshape(*x.shape[:-1], out.shape[-1])
        if rounded:
            rows = in_eight_bits(rows)
        if form is BlockForm.SUMS:
            out = jnp.stack([self._sums(row) for row in rows])
        elif form is BlockForm.WHOLE:
            out = self._multiplied(self.parts, rows).T
        else:
            out = in_tiles(self.parts, rows, self.dtype, self._multiplied).T
        return out.reshape(*x.shape[:-1], out.shape[-1])

    def rows(self, ids: jax.Array) -> jax.Array:
        rows: jax.Array = numbers(self._kind, tuple(part[ids] for part in self.parts))
        return rows

    def matrix_at(self, index: jax.Array) -> BlockMatrix:
        return BlockMatrix(tuple(part[index] for part in self.parts), self.kind, self.dtype, self.forms)

    @property
    def outputs(self) -> int:
        """Number of outputs of the matrix, or of each matrix in a stack."""
        count: int = self.parts[0].shape[-2 - len(self._kind.parts[0].shape)]
        return count

    @property
    def _kind(self) -> BlockFormat:
        return BLOCK_FORMATS[self.kind]

    def _multiplied(self, parts: tuple[Any, ...], rows: jax.Array) -> jax.Array:
        """Return the products of some of the matrix' outputs with all rows: float32 ``[out, row]``."""
        precision = jax.lax.Precision.HIGHEST if self.dtype == "float32" else jax.lax.Precision.DEFAULT
        slices, outputs = self._kind.unpack(parts), parts[0].shape[0]
        products = [
            jnp.einsum(
                "oi,mi->om",
                weights.reshape(outputs, -1).astype(self.dtype),
                inputs.reshape(rows.shape[0], -1).astype(self.dtype),
                precision=precision,
                preferred_element_type=jnp.float32,
            )
            for weights, inputs in zip(slices, self._inputs(rows), strict=True)
        ]
        return sum(products[1:], products[0])

    def _sums(self, row: jax.Array) -> jax.Array:
        """Return the product with one row: float32 ``[out]``."""
        total = jnp.zeros((), jnp.float32)
        for weights, inputs in zip(self._kind.unpack(self.parts), self._inputs(row[None]), strict=True):
            products = weights * inputs.reshape(1, *weights.shape[1:])
            lanes = jnp.sum(products, axis=tuple(range(1, products.ndim - 1)))
            total = total + jnp.sum(lanes, axis=-1)
        return total

    def _inputs(self, rows: jax.Array) -> list[jax.Array]:
        """Split the rows ``[row, in]`` into the inputs of each slice: ``[row, group, lane]``."""
        kind = self._kind
        cut = rows.reshape(rows.shape[0], -1, kind.slices, kind.lane)
        return [cut[:, :, index] for index in range(kind.slices)]


@partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["outputs"])
@dataclass(frozen=True)
class Stacked(Packed):
    """One matrix that is stored as several, such as a projection with queries in one format and values in another.

    ``weights`` are these matrices in order, and ``outputs`` the number of outputs of each.
    """

    weights: tuple[Any, ...]  # each a ``Packed``
    outputs: tuple[int, ...]

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        return jnp.concatenate([weight.product(x, plan, real) for weight in self.weights], axis=-1)

    def rows(self, ids: jax.Array) -> jax.Array:
        total, first = jnp.zeros((), jnp.float32), 0
        for weight, count in zip(self.weights, self.outputs, strict=True):
            mine = (ids >= first) & (ids < first + count)
            rows = weight.rows(jnp.clip(ids - first, 0, count - 1))
            total = total + jnp.where(mine[..., None], rows, 0.0)
            first += count
        return total

    def matrix_at(self, index: jax.Array) -> Stacked:
        return Stacked(tuple(weight.matrix_at(index) for weight in self.weights), self.outputs)
