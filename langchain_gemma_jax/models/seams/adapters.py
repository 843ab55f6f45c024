"""Adapters of low rank (LoRA) beside a model's matrices: as stacks on the device, and in products, without merging.

An adapter adds ``up @ (down @ x)`` to the product of a matrix with ``x``. The adapters of one model that are on a
device lie in one stack of slots, padded to one rank. A program takes an ``AdaptedParams`` in the place of the
parameters: these, the stacks, and for each row of the batch the number of its slot, from 1, or 0 for no adapter.
``unfolded`` makes ordinary parameters of it while JAX traces, in which each adapted matrix is an ``Adapted``. So no
forward pass knows of adapters, and a program without any is traced as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.weights import Packed, Plan, Weight, matrix_at, rows_of


@dataclass(frozen=True)
class AdaptedMatrix:
    """One matrix of a layer that adapters may change: its inputs, and the projections that its outputs consist of."""

    inputs: int
    parts: Mapping[str, int]  # outputs of each projection by its name in checkpoints, in the matrix's order


@dataclass(frozen=True)
class AdaptedLayer:
    """One layer's matrices that adapters may change, by their names in the tree of parameters."""

    matrices: Mapping[str, AdaptedMatrix]
    unread: frozenset[str] = frozenset()  # projections that checkpoints have here, and no model reads

    def shape(self, projection: str) -> tuple[int, int] | None:
        """Return a projection's (outputs, inputs). None: the layer has no such projection."""
        for matrix in self.matrices.values():
            if projection in matrix.parts:
                return matrix.parts[projection], matrix.inputs
        return None


AdaptedLayers: TypeAlias = Sequence[AdaptedLayer]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Stack:
    """The adapters of one matrix, one a slot. Float32, whatever the matrix is stored as."""

    down: Any  # [slot, part, rank, in]
    ups: tuple[Any, ...]  # of each part [slot, rank, out]


Stacks: TypeAlias = Sequence[Mapping[str, Stack]]
"""The stacks of each layer, by the names of its matrices."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AdaptedParams:
    """A model's parameters, the adapters beside them, and each row's slot: the place of parameters in programs."""

    params: Mapping[str, Any]
    stacks: Stacks
    slots: Any  # [row] int32: from 1; 0: no adapter


def stack_shapes(layers: AdaptedLayers, slots: int, rank: int) -> list[dict[str, Stack]]:
    """Return the shapes of all stacks: tuples of numbers in the place of arrays."""
    return [
        {
            name: Stack(
                (slots, len(matrix.parts), rank, matrix.inputs),
                tuple((slots, rank, outputs) for outputs in matrix.parts.values()),
            )
            for name, matrix in layer.matrices.items()
        }
        for layer in layers
    ]


def with_slot(stacks: Any, slot: jax.Array, one: Any) -> Any:
    """Return the stacks with one slot replaced. ``one``: the same tree, without the slots' axis."""
    return jax.tree.map(lambda all_of, new: jax.lax.dynamic_update_index_in_dim(all_of, new, slot, 0), stacks, one)


def unfolded(params: Any) -> Any:
    """Return parameters as forward passes take them, of what a program was given."""
    if not isinstance(params, AdaptedParams):
        return params
    layers = [
        {**layer, **{name: Adapted(layer[name], stack, params.slots) for name, stack in stacks.items()}}
        for layer, stacks in zip(params.params["layers"], params.stacks, strict=True)
    ]
    return {**params.params, "layers": layers}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Adapted(Packed):
    """A matrix with adapters beside it."""

    base: Weight
    stack: Stack
    slots: jax.Array  # [row] int32

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        return linear(x, self.base, plan, real) + _added(x, self.stack, self.slots)

    def rows(self, ids: jax.Array) -> jax.Array:
        return rows_of(self.base, ids, Plan())

    def matrix_at(self, index: jax.Array) -> Weight:
        return matrix_at(self.base, index)


def _added(x: jax.Array, stack: Stack, slots: jax.Array) -> jax.Array:
    """Return what the rows' adapters add to the products of ``x [row, token, in]``."""
    count, parts, rank, inputs = stack.down.shape
    x = x.astype(jnp.float32)
    if x.shape[0] == 1:  # a prompt: its own adapter alone is read
        at = jnp.maximum(slots[0] - 1, 0)
        down = jax.lax.dynamic_index_in_dim(stack.down, at, keepdims=False).reshape(-1, inputs)
        inner = jnp.where(slots[0] > 0, _product(x, down.T), 0.0).reshape(*x.shape[:-1], parts, rank)
        ups = [jax.lax.dynamic_index_in_dim(up, at, keepdims=False) for up in stack.ups]
    else:  # all slots' at once, each read once, and of each row the slot that is not its own set to zero
        inner = _product(x, stack.down.reshape(-1, inputs).T).reshape(*x.shape[:-1], count, parts, rank)
        own = slots[:, None] == jnp.arange(1, count + 1)[None, :]
        inner = jnp.where(own[:, None, :, None, None], inner, 0.0)
        inner = jnp.moveaxis(inner, -2, -3).reshape(*x.shape[:-1], parts, count * rank)
        ups = [up.reshape(count * rank, -1) for up in stack.ups]
    return jnp.concatenate([_product(inner[..., part, :], up) for part, up in enumerate(ups)], axis=-1)


def _product(x: jax.Array, matrix: jax.Array) -> jax.Array:
    # Float32, as PEFT has adapters beside weights of any dtype. Hardware would round first.
    return jnp.matmul(x, matrix, precision=jax.lax.Precision.HIGHEST)
