"""``Adapter``: matrices of low rank for a model's projections, in host memory, and as one slot of a stack."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.errors import CorruptCheckpointError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.seams.adapters import AdaptedLayers, Stack

Float32s: TypeAlias = npt.NDArray[np.float32]
Place: TypeAlias = tuple[int, str]
"""A layer's number, and a projection's name: ``(3, "q_proj")``."""

RANKS = (8, 16, 32, 64, 128, 256)
"""The ranks that stacks are padded to: the smallest that holds all adapters of a model that are in use."""


@dataclass(frozen=True)
class LowRank:
    """The two matrices for one projection. ``up`` has the adapter's scale in it."""

    down: Float32s  # [rank, in]
    up: Float32s  # [out, rank]

    @property
    def rank(self) -> int:
        return int(self.down.shape[0])


@dataclass(frozen=True, eq=False)
class Adapter:
    """An adapter for one model. Two are equal only if they are the same object; ``digest`` tells contents apart."""

    name: str
    path: Path
    matrices: Mapping[Place, LowRank] = field(repr=False)

    @cached_property
    def digest(self) -> bytes:
        """A digest of all numbers and their places: keys and values are kept apart by it."""
        found = hashlib.sha256()
        for (layer, projection), each in sorted(self.matrices.items()):
            found.update(f"{layer}\0{projection}\0{each.down.shape}\0{each.up.shape}\0".encode())
            found.update(np.ascontiguousarray(each.down).data)
            found.update(np.ascontiguousarray(each.up).data)
        return found.digest()

    @property
    def rank(self) -> int:
        """The largest rank of its matrices."""
        return max(each.rank for each in self.matrices.values())

    @property
    def nbytes(self) -> int:
        """Bytes in host memory."""
        return sum(each.down.nbytes + each.up.nbytes for each in self.matrices.values())

    def slot(self, layers: AdaptedLayers, rank: int) -> list[dict[str, Stack]]:
        """Return one slot of the stacks for a model, padded with zeros to a rank."""
        found = []
        for number, layer in enumerate(layers):
            stacks: dict[str, Stack] = {}
            for name, matrix in layer.matrices.items():
                down = np.zeros((len(matrix.parts), rank, matrix.inputs), np.float32)
                ups = tuple(np.zeros((rank, outputs), np.float32) for outputs in matrix.parts.values())
                for part, projection in enumerate(matrix.parts):
                    if (own := self.matrices.get((number, projection))) is not None:
                        down[part, : own.rank], ups[part][: own.rank] = own.down, own.up.T
                stacks[name] = Stack(down, ups)
            found.append(stacks)
        return found


@dataclass(frozen=True)
class Base:
    """The model that an adapter is read for."""

    name: str
    layers: AdaptedLayers


def made(name: str, path: Path, says: str, pairs: Mapping[Place, LowRank], base: Base) -> Adapter:
    """Return the adapter of these matrices, after a check that they fit the model.

    Args:
        name: its name for people.
        path: the file of its tensors.
        says: the model that the file says it is for; empty: it does not say.
        pairs: the matrices for each projection.
        base: the model that it is read for.

    Raises:
        TensorMismatchError: it is for another model. CorruptCheckpointError: a number is infinite or none, or there are
        no matrices. UnsupportedModelError: its rank is too large.
    """
    kept: dict[Place, LowRank] = {}
    whose = f"an adapter for {says}" if says else "an adapter whose file names no model"
    for (number, projection), each in pairs.items():
        layer = base.layers[number] if number < len(base.layers) else None
        if layer is not None and projection in layer.unread:
            continue  # transformers has this projection here too, and reads what another layer's gave instead
        shape = None if layer is None else layer.shape(projection)
        found = (each.up.shape[0], each.down.shape[1])
        if shape != found:
            where = f"{projection} of layer {number}"
            expected = (
                f"{where} of {base.name!r} to be there ({len(base.layers)} layers)"
                if shape is None
                else f"{where} of {shape[1]} inputs and {shape[0]} outputs, as {base.name!r} has it"
            )
            raise TensorMismatchError(
                path, expected, f"{whose}, with {found[1]} inputs and {found[0]} outputs there", "Load its own base."
            )
        if not (np.isfinite(each.down).all() and np.isfinite(each.up).all()):
            raise CorruptCheckpointError(path, "finite numbers", f"others in {projection} of layer {number}")
        kept[number, projection] = each
    if not kept:
        raise CorruptCheckpointError(path, "matrices of low rank, such as lora_A and lora_B", "none")
    adapter = Adapter(name, path, kept)
    if adapter.rank > RANKS[-1]:
        raise UnsupportedModelError(
            f"{path}: expected an adapter of rank {RANKS[-1]} at most, found {adapter.rank}. Merge it into its model."
        )
    return adapter


def paired(
    path: Path, downs: Mapping[Place, Float32s], ups: Mapping[Place, Float32s]
) -> dict[Place, tuple[Float32s, Float32s]]:
    """Return the two matrices of each projection, after a check that both are there and have one rank.

    Raises:
        TensorMismatchError: one is missing, or the ranks differ.
    """
    for number, projection in sorted(downs.keys() ^ ups.keys()):
        missing = "lora_B" if (number, projection) in downs else "lora_A"
        raise TensorMismatchError(path, f"{missing} for {projection} of layer {number} too", "only its other half")
    for (number, projection), down in downs.items():
        up = ups[number, projection]
        if down.ndim != 2 or up.ndim != 2 or down.shape[0] != up.shape[1] or not down.shape[0]:
            raise TensorMismatchError(
                path,
                f"lora_A [rank, inputs] and lora_B [outputs, rank] for {projection} of layer {number}",
                f"shapes {_shape(down)} and {_shape(up)}",
            )
    return {place: (down, ups[place]) for place, down in downs.items()}


def _shape(array: Float32s) -> Sequence[int]:
    return list(array.shape)
