"""The three things every checkpoint format is told by: where its bytes are, what they are called, how they lie.

A format is a ``TensorSource`` (stored tensors by their stored names) and a ``Naming`` (which stored
tensors make up one array of our parameter tree). ``place.py`` needs nothing else to load it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import Path
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

Array: TypeAlias = npt.NDArray[np.generic]
"""A numpy array of any dtype, bfloat16 (``ml_dtypes``) included."""


def as_stored(stored: Array) -> Array:
    """The arrangement of a tensor that is stored the way ``abstract.py`` describes it."""
    return stored


def as_number(stored: Array) -> Array:
    """The arrangement of a number that is stored as a vector of one."""
    return stored.reshape(())


@dataclass(frozen=True)
class Part:
    """One stored tensor that is a block of one array of the parameter tree.

    ``arrange`` turns what is stored into the block, in the logical axis order of ``abstract.py`` (a
    matrix is ``(outputs, inputs)``). It gets the stored dtype and keeps it; it should return a view
    where it can. It never adds the norm offset: ``place.py`` does, for every format alike.

    The blocks of one matrix are stacked along axis -2 (its outputs) in the order of the list; a
    vector or a number has one part. One stored tensor may serve several parts.
    """

    name: str
    shape: tuple[int, ...]  # as stored: checked before anything is read
    arrange: Callable[[Array], Array] = as_stored
    by_rows: bool = False  # may be read and arranged some rows (of its first axis) at a time: the block is their stack


Naming: TypeAlias = Callable[[ModelConfig, Path], list[Part]]
"""Which stored tensors make up the array at this path of ``abstract(config)``, in order."""


@dataclass(frozen=True)
class Cut:
    """Some of a stored tensor along one of its axes."""

    name: str
    axis: int
    begin: int
    end: int


class TensorSource(ABC):
    """Stored tensors by name. Opening one checks its headers and reads no tensor; ``with`` closes it."""

    location: str  # the folder or file, for messages
    shared: bool = False  # whether several threads may read from it at once

    @abstractmethod
    def names(self) -> Collection[str]:
        """The stored names."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """The stored shape. ``KeyError`` if there is no such name, here and below."""

    @abstractmethod
    def dtype(self, name: str) -> str:
        """The stored dtype as numpy spells it ("float32", "bfloat16", "int8"), or as the format does."""

    @abstractmethod
    def read(self, name: str) -> Array:
        """The whole tensor. It may be the stored memory itself: nobody writes to it."""

    def read_into(self, name: str, target: Array) -> bool:  # noqa: ARG002  most formats cannot
        """Fill an array of the tensor's shape and dtype, whose bytes lie end to end. False: it has to be ``read``."""
        return False

    def read_rows(self, name: str) -> Iterator[Array]:
        """The tensor in blocks along its first axis: small ones, where ``read`` would have to allocate it whole.

        A block is what it is until the next is asked for: they may share their memory.
        """
        yield self.read(name)

    def nbytes(self, name: str) -> int:
        """The bytes that a tensor is stored in, where they lie end to end. See ``read_bytes``."""
        raise NotImplementedError(f"{type(self).__name__} has no bytes of {name!r}")

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        """Fill an array with a tensor's bytes, from ``begin`` on. Only for a source that can ``cut``."""
        raise NotImplementedError(f"{type(self).__name__} reads no bytes of {name!r}")

    def cut(self, cuts: Mapping[str, Cut]) -> TensorSource | None:  # noqa: ARG002  most formats cannot
        """The parts of tensors as tensors, of which no other bytes are read. None: this source reads whole ones."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Close the files. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
