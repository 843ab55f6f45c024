"""The official library's tree as it is in memory, read like a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import Self, TypeAlias

import jax
import numpy as np

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.gemma_tree import Leaf, TreePath, text_tower
from langchain_gemma_jax.models.checkpoint.parts import Array

Tree: TypeAlias = Mapping[str, object]
"""Nested mappings with arrays at their ends, JAX's or numpy's."""


class TreeSource:
    """A ``TensorSource`` over the text tower of a tree in memory. Names are ``gemma_tree.text_tower``'s."""

    def __init__(self, tree: Tree, location: str) -> None:
        self.location = location
        arrays = dict(_arrays(tree, (), location))
        leaves = {path: Leaf("/".join(path), array.shape, array.dtype.name) for path, array in arrays.items()}
        self._arrays = {"/".join(path): array for path, array in arrays.items()}
        self.tower = text_tower(leaves, location)

    def names(self) -> Collection[str]:
        return self.tower.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.tower[name].shape

    def dtype(self, name: str) -> str:
        return self.tower[name].dtype

    def read(self, name: str) -> Array:
        leaf = self.tower[name]
        array = self._arrays[leaf.key]
        if isinstance(array, jax.Array):
            # A second handle on the same memory: numpy's copy, which JAX keeps with the handle, goes with it.
            shards = [shard.data for shard in array.addressable_shards]
            array = jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)
        stored = np.asarray(array)
        return stored if leaf.row is None else stored[leaf.row]

    def release(self) -> None:
        """Nothing to give back: the arrays are the caller's."""

    def close(self) -> None:
        self._arrays = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _arrays(tree: Tree, path: TreePath, location: str) -> Iterator[tuple[TreePath, jax.Array | Array]]:
    for name, value in tree.items():
        at = (*path, str(name))
        if isinstance(value, Mapping):
            yield from _arrays(value, at, location)
            continue
        if not isinstance(value, jax.Array | np.ndarray):
            raise TensorMismatchError(location, f"an array at {'/'.join(at)}", type(value).__name__)
        if isinstance(value, jax.Array) and value.is_deleted():
            raise TensorMismatchError(
                location,
                f"an array at {'/'.join(at)}",
                "one that is deleted",
                "A training step that was given the tree as donated has taken it over: pass the step's result.",
            )
        yield at, value
