"""A file of arrays, mapped: where each array lies, and the arrays themselves.

    header (4096 bytes) | the arrays of the first path | the arrays of the second one | ...

Each array begins at a multiple of 64, so that JAX takes it over without a copy. The file is filled through the mapping,
after its blocks were reserved, so a full disk is an error of the reservation and not a signal. From then on it is
mapped for reading alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, numpy_dtype
from langchain_gemma_jax.models.seams.tensor_source import Array

HEADER = 4096  # bytes
_ALIGNMENT = 64
_LARGE_PAGE = 2 << 20


@dataclass(frozen=True)
class ArrayPlaces:
    """The place of each array in a file."""

    at: Mapping[Path, tuple[int, ...]]  # offsets in the file, of the arrays that a path is stored in
    by_row: tuple[tuple[int, int], ...]  # offset and bytes of pages of which a request needs a few
    size: int  # of the whole file

    @classmethod
    def of(cls, stored: Iterable[tuple[Path, Any]], by_row: Callable[[Path], bool]) -> ArrayPlaces:
        """Return the places of the arrays that are stored at some paths.

        ``by_row`` is true of tables that are read row by row: large pages would bring a hundred rows for one.
        """
        at: dict[Path, tuple[int, ...]] = {}
        alone, end = [], HEADER
        for path, specs in stored:
            alignment = _LARGE_PAGE if by_row(path) else _ALIGNMENT
            begin = end = _up(end, alignment)
            places = []
            for spec in jax.tree.leaves(specs):
                places.append(end)
                end = _up(end + spec.nbytes, _ALIGNMENT)
            if by_row(path):
                end = _up(end, alignment)
                alone.append((begin, end - begin))
            at[path] = tuple(places)
        return cls(at, tuple(alone), _up(end, mmap.PAGESIZE))


class ArrayFile:
    """The arrays of an open file. The mapping ends with the last array that lies in it."""

    def __init__(self, fd: int, places: ArrayPlaces, *, filled: bool) -> None:
        """Map the file. ``filled``: its arrays are there; otherwise its blocks are reserved now, to be filled.

        Raises:
            OSError: it cannot be mapped, or the disk has no room for it.
        """
        self.filled, self._places = filled, places
        if not filled:
            os.posix_fallocate(fd, 0, places.size)
        access = mmap.PROT_READ if filled else mmap.PROT_READ | mmap.PROT_WRITE
        self._map = mmap.mmap(fd, places.size, flags=mmap.MAP_SHARED, prot=access)
        end = 0
        for begin, size in (*places.by_row, (places.size, 0)):
            _advise(self._map, "MADV_HUGEPAGE", end, begin - end)
            if filled:
                _advise(self._map, "MADV_WILLNEED", end, begin - end)
            for advice in ("MADV_NOHUGEPAGE", "MADV_RANDOM"):
                _advise(self._map, advice, begin, size)
            end = begin + size
        self._bytes = np.frombuffer(self._map, np.uint8)

    def arrays(self, path: Path, specs: Any) -> Any:
        """Return the arrays of a path: a tree like ``specs``."""
        leaves, structure = jax.tree.flatten(specs)
        at = self._places.at[path]
        return jax.tree.unflatten(structure, [self._array(*each) for each in zip(at, leaves, strict=True)])

    def empty(self, path: Path) -> Callable[[ArraySpec], Array]:
        """Return a function that returns the arrays of a path one after the other, to be filled."""
        places = iter(self._places.at[path])
        return lambda spec: self._array(next(places), spec)

    def copy(self, path: Path, specs: Any, arrays: Any) -> Any:
        """Copy the arrays of a path to their places, and return those."""
        rooms = self.arrays(path, specs)
        for room, array in zip(jax.tree.leaves(rooms), jax.tree.leaves(arrays), strict=True):
            room[...] = array
        return rooms

    def seal(self) -> None:
        """Allow no more writing, now that all arrays are filled, and leave to the disk what is read by row."""
        libc = ctypes.CDLL(None, use_errno=True)
        address = ctypes.c_void_p(self._bytes.ctypes.data)
        libc.mprotect(address, ctypes.c_size_t(self._places.size), mmap.PROT_READ)
        for begin, size in self._places.by_row:
            _advise(self._map, "MADV_DONTNEED", begin, size)
        self.filled = True

    def _array(self, at: int, spec: ArraySpec) -> Array:
        room = self._bytes[at : at + spec.nbytes]
        return room.view(numpy_dtype(spec.dtype)).reshape(spec.stored_shape)


def _advise(mapped: mmap.mmap, advice: str, begin: int, size: int) -> None:
    """Give the system an advice that it may not know: nothing but speed and memory depends on it."""
    number = getattr(mmap, advice, None)
    if number is not None and size > 0:
        with suppress(OSError):
            mapped.madvise(number, begin, size)


def _up(size: int, to: int) -> int:
    return -(-size // to) * to
