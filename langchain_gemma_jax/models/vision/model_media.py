"""A loaded model's encoders: read when the first picture or sound comes, and freed with the model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import numpy_dtype
from langchain_gemma_jax.models.seams.media_encoder import EncoderTree, MediaEncoder, Tensor
from langchain_gemma_jax.models.seams.media_support import MediaSupport
from langchain_gemma_jax.models.seams.placement import Placement

ReadsTensor: TypeAlias = Callable[[Tensor], npt.NDArray[Any]]
"""Reads a tensor in the encoder's layout, in any shape and dtype that hold the same numbers."""

KEPT_BYTES = 256 << 20  # of soft tokens in host memory: some 100 pictures of the largest model


class KeptVectors:
    """A least-recently-used cache of soft tokens, by the digest of the picture or sound."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most, self._vectors = most_bytes, OrderedDict[bytes, npt.NDArray[np.float32]]()
        self.nbytes = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._vectors

    def get(self, digest: bytes) -> npt.NDArray[np.float32] | None:
        """Return the soft tokens of a digest, if they are still kept."""
        vectors = self._vectors.get(digest)
        if vectors is not None:
            self._vectors.move_to_end(digest)
        return vectors

    def put(self, digest: bytes, vectors: npt.NDArray[np.float32]) -> None:
        """Keep these, and drop the least recently used until the rest fits. The newest one always stays."""
        self.nbytes += vectors.nbytes - (0 if (old := self._vectors.pop(digest, None)) is None else old.nbytes)
        self._vectors[digest] = vectors
        while self.nbytes > self._most and len(self._vectors) > 1:
            self.nbytes -= self._vectors.popitem(last=False)[1].nbytes


@dataclass(eq=False)
class ModelMedia:
    """A model's encoders, with the weights of those that are in memory."""

    support: MediaSupport
    encoders: tuple[MediaEncoder, ...]
    # The files, as they were when the model was read.
    open: Callable[[], AbstractContextManager[ReadsTensor]] = field(repr=False)
    loaded: dict[int, EncoderTree] = field(default_factory=dict, repr=False)
    kept: KeptVectors = field(default_factory=KeptVectors, repr=False)  # it stays when the weights are freed

    @property
    def nbytes(self) -> int:
        """Bytes of the weights that are in memory."""
        return sum(leaf.nbytes for tree in self.loaded.values() for leaf in jax.tree.leaves(tree.parts()))

    def encoder_of(self, inputs: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the index of the encoder for an input, and the input's size. None: no encoder takes it."""
        for number, encoder in enumerate(self.encoders):
            if (size := encoder.takes(inputs)) is not None:
                return number, size
        return None

    def nbytes_of(self, number: int, dtype: str) -> int:
        """Return the bytes of one encoder's weights, with matrices in ``dtype``."""
        leaves = (each for part in self.encoders[number].tensors().parts() for each in part.values())
        return sum(prod(each.shape) * numpy_dtype(each.dtype(dtype)).itemsize for each in leaves)

    def nbytes_of_all(self, dtype: str) -> int:
        """Return the bytes of all encoders' weights, with matrices in ``dtype``."""
        return sum(self.nbytes_of(number, dtype) for number in range(len(self.encoders)))

    def read(self, number: int, dtype: str, where: Placement) -> EncoderTree:
        """Read the weights of one encoder from the files to the model's placement.

        Raises:
            CheckpointError: the files cannot be read, or changed since the model was loaded.
        """
        tree = self.encoders[number].tensors()

        def put(read: ReadsTensor, tensors: Mapping[str, Tensor]) -> dict[str, jax.Array]:
            arrays = {}
            for key, tensor in tensors.items():
                stored = read(tensor).reshape(tensor.shape)
                arrays[key] = where.put(np.asarray(stored, numpy_dtype(tensor.dtype(dtype)), order="C"))
            return arrays

        with self.open() as read:
            return EncoderTree(put(read, tree.begin), [put(read, layer) for layer in tree.layers], put(read, tree.end))

    def close(self) -> None:
        """Free the weights that are in memory. They are read again when needed."""
        while self.loaded:
            _, tree = self.loaded.popitem()
            for leaf in jax.tree.leaves(tree.parts()):
                if not leaf.is_deleted():
                    leaf.delete()
