"""The official library's parameter tree in memory, read like a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

import jax
import numpy as np

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import StoredArray, TowerSource
from langchain_gemma_jax.models.seams.tensor_source import Array

Tree: TypeAlias = Mapping[str, object]
"""Nested mappings with arrays at their ends, JAX's or numpy's."""


class TreeSource(TowerSource):
    """The text tower of a tree in memory."""

    def __init__(self, tree: Tree, location: str) -> None:
        self._arrays = dict(_flat(tree, "", location))
        leaves = {path: StoredArray(path, array.shape, array.dtype.name) for path, array in self._arrays.items()}
        super().__init__(leaves, location)

    def read(self, name: str) -> Array:
        leaf = self.tower[name]
        array = self._arrays[leaf.key]
        if isinstance(array, jax.Array):
            # A second handle on the same memory. JAX caches numpy's copy with a handle, so this one frees it soon.
            shards = [shard.data for shard in array.addressable_shards]
            array = jax.make_array_from_single_device_arrays(array.shape, array.sharding, shards)
        stored = np.asarray(array)
        return stored if leaf.row is None else stored[leaf.row]

    def close(self) -> None:
        self._arrays = {}


def _flat(tree: Tree, prefix: str, location: str) -> Iterator[tuple[str, jax.Array | Array]]:
    """Yield every array with its path, the keys joined by slashes."""
    for name, value in tree.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}/", location)
            continue
        if not isinstance(value, jax.Array | np.ndarray):
            raise TensorMismatchError(location, f"an array at {path}", type(value).__name__)
        if isinstance(value, jax.Array) and value.is_deleted():
            raise TensorMismatchError(
                location,
                f"an array at {path}",
                "one that is deleted",
                "A training step that was given the tree as donated has taken it over: pass the step's result.",
            )
        yield path, value
