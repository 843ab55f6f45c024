"""Parts of stored tensors as tensors of their own: what one of several devices has of a model's array.

A part of an array is filled as the array would be, from narrower tensors; and of each of these no other bytes are read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from langchain_gemma_jax.models.checkpoint.parts import Array, Cut, Part, TensorSource, as_stored
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, numpy_dtype
from langchain_gemma_jax.models.configuration.division import Section

PIECE_BYTES = 1 << 20  # read at a time where rows are converted or taken apart on their way


class CutTensors(TensorSource):
    """Parts of the tensors of a source that can read any bytes of them. Whoever opened the source closes it."""

    shared = True

    def __init__(self, stored: TensorSource, cuts: Mapping[str, Cut]) -> None:
        """``cuts`` are the parts, by the names that they have here."""
        self.location, self._stored, self._cuts = stored.location, stored, cuts

    def names(self) -> Collection[str]:
        return self._cuts.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        cut = self._cuts[name]
        return _with(self._stored.shape(cut.name), cut.axis, cut.end - cut.begin)

    def dtype(self, name: str) -> str:
        return self._stored.dtype(self._cuts[name].name)

    def nbytes(self, name: str) -> int:
        cut = self._cuts[name]
        whole = self._stored.shape(cut.name)[cut.axis]
        return self._stored.nbytes(cut.name) * (cut.end - cut.begin) // whole

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        cut, room = self._cuts[name], target.reshape(-1).view(np.uint8)
        shape = self._stored.shape(cut.name)
        whole = self._stored.nbytes(cut.name) // math.prod(shape[: cut.axis])  # bytes in which all of the axis lies
        first, last = (whole * at // shape[cut.axis] for at in (cut.begin, cut.end))
        done = 0
        while done < room.size:
            run, at = divmod(begin + done, last - first)
            some = min(last - first - at, room.size - done)
            self._stored.read_bytes(cut.name, run * whole + first + at, room[done : done + some])
            done += some

    def read(self, name: str) -> Array:
        found = np.empty(self.shape(name), numpy_dtype(self.dtype(name)))
        self.read_bytes(name, 0, found)
        return found

    def read_into(self, name: str, target: Array) -> bool:
        self.read_bytes(name, 0, target)
        return True

    def read_rows(self, name: str) -> Iterator[Array]:
        total, *inner = self.shape(name)
        for rows in self.pieces(name, total):
            yield rows.view(numpy_dtype(self.dtype(name))).reshape(-1, *inner)

    def pieces(self, name: str, total: int) -> Iterator[Array]:
        """Yield a part of so many rows, some at a time: uint8 ``[row, byte]``, all in the same room."""
        row_bytes = self.nbytes(name) // total
        room = np.empty((max(1, min(total, PIECE_BYTES // max(1, row_bytes))), row_bytes), np.uint8)
        for start in range(0, total, len(room)):
            rows = room[: total - start]
            self.read_bytes(name, start * row_bytes, rows)
            yield rows

    def close(self) -> None:
        """Leave the source open: there are other parts."""


def joint_sections(spec: ArraySpec, stored: Any) -> tuple[Section, ...]:
    """The sections of an array, each as long as the array is, as what it is stored in can be cut. None: it cannot."""
    found = [section for leaf in jax.tree.leaves(stored) for section in leaf.sections or (None,)]
    blocks = {0 if section is None else section.block for section in found}
    if len(blocks) != 1 or 0 in blocks:
        return ()
    block = blocks.pop()
    return tuple(replace(section, block=block) for section in spec.sections)


def narrowed(spec: ArraySpec, length: int) -> ArraySpec:
    """The spec of one device's part of an array, which is so long along the axis that is divided."""
    return replace(spec, shape=_with(spec.shape, spec.along, length), sections=())


def cut_parts(
    spec: ArraySpec, parts: Sequence[Part], pieces: Sequence[slice]
) -> tuple[list[Part], dict[str, Cut]] | None:
    """The stored parts that make up these pieces of an array, by names of their own. None: they lie in another way."""
    rows = len(spec.shape) - 2  # along which parts are stacked
    if any(part.arrange is not as_stored or part.by_rows or len(part.shape) != len(spec.shape) for part in parts):
        return None
    if len(pieces) > 1 and spec.along != rows:
        return None
    found, cuts = list[Part](), dict[str, Cut]()
    for piece in pieces:
        first = 0
        for part in parts:
            before = first if spec.along == rows else 0
            first += part.shape[rows]
            begin, end = max(0, piece.start - before), min(part.shape[spec.along], piece.stop - before)
            if begin < end:
                name = f"{part.name}[{begin}:{end}]"
                cuts[name] = Cut(part.name, spec.along, begin, end)
                found.append(replace(part, name=name, shape=_with(part.shape, spec.along, end - begin)))
    return found, cuts


def _with(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])
