"""The interface of a checkpoint format: its stored tensors, and their place in the parameter tree.

A format is a ``TensorSource`` (stored tensors by their stored names) and a ``Naming`` (the stored
tensors that make up one array of our parameter tree). ``place.py`` needs nothing else to load it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, numpy_dtype
from langchain_gemma_jax.models.configuration.division import Section
from langchain_gemma_jax.models.configuration.model_config import ModelConfig

PIECE_BYTES = 1 << 20  # read at a time where rows are converted or taken apart on their way

Array: TypeAlias = npt.NDArray[np.generic]
"""A numpy array of any dtype, bfloat16 (``ml_dtypes``) included."""


def as_stored(stored: Array) -> Array:
    """Return a tensor unchanged: it is stored the way ``abstract.py`` describes it."""
    return stored


def as_number(stored: Array) -> Array:
    """Return the number in a vector of one."""
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
    by_rows: bool = False  # True: it can be read and arranged a few rows (of its first axis) at a time


Naming: TypeAlias = Callable[[ModelConfig, Path], list[Part]]
"""Returns the stored tensors that make up the array at a path of ``abstract(config)``, in order."""


@dataclass(frozen=True)
class Cut:
    """A range of a stored tensor along one of its axes."""

    name: str
    axis: int
    begin: int
    end: int


class TensorSource(ABC):
    """Stored tensors by name. Opening one checks its headers and reads no tensor; ``with`` closes it."""

    location: str  # the folder or file, for messages
    shared: bool = False  # True: several threads may read from it at once

    @abstractmethod
    def names(self) -> Collection[str]:
        """Return the stored names."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Return the stored shape. ``KeyError`` if there is no such name, here and below."""

    @abstractmethod
    def dtype(self, name: str) -> str:
        """Return the stored dtype as numpy spells it ("float32", "bfloat16", "int8"), or as the format does."""

    @abstractmethod
    def read(self, name: str) -> Array:
        """Return the whole tensor. It may be the stored memory itself, so do not write to it."""

    def read_into(self, name: str, target: Array) -> bool:  # noqa: ARG002  most formats cannot
        """Fill a contiguous array of the tensor's shape and dtype. Return False if this source cannot: use ``read``."""
        return False

    def read_rows(self, name: str) -> Iterator[Array]:
        """Yield the tensor in blocks along its first axis: small ones, so that it is not allocated whole.

        A block is valid until the next one is taken: blocks may share memory.
        """
        yield self.read(name)

    def nbytes(self, name: str) -> int:
        """Return the size of a stored tensor in bytes, where these are contiguous. See ``read_bytes``."""
        raise NotImplementedError(f"{type(self).__name__} has no bytes of {name!r}")

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        """Fill an array with a tensor's bytes, from ``begin`` on. Only for a source that can ``cut``."""
        raise NotImplementedError(f"{type(self).__name__} reads no bytes of {name!r}")

    def cut(self, cuts: Mapping[str, Cut]) -> TensorSource | None:  # noqa: ARG002  most formats cannot
        """Return a source of these parts, which reads no other bytes. None: this source reads whole tensors only."""
        return None

    @property
    def tower_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shapes of a vision tower's arrays stored beside the text model's, by their names in the tower."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Close the files. May be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class CutTensors(TensorSource):
    """Parts of the tensors of a source that can read any bytes of them. The caller that opened the source closes it."""

    shared = True

    def __init__(self, stored: TensorSource, cuts: Mapping[str, Cut]) -> None:
        """Name the parts: ``cuts`` maps a name in this source to a range of a stored tensor."""
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
        tensor = np.empty(self.shape(name), numpy_dtype(self.dtype(name)))
        self.read_bytes(name, 0, tensor)
        return tensor

    def read_into(self, name: str, target: Array) -> bool:
        self.read_bytes(name, 0, target)
        return True

    def read_rows(self, name: str) -> Iterator[Array]:
        total, *inner = self.shape(name)
        for rows in self.pieces(name, total):
            yield rows.view(numpy_dtype(self.dtype(name))).reshape(-1, *inner)

    def pieces(self, name: str, total: int) -> Iterator[Array]:
        """Yield a part as ``total`` rows, a few at a time: uint8 ``[row, byte]``, all in the same buffer."""
        row_bytes = self.nbytes(name) // total
        room = np.empty((max(1, min(total, PIECE_BYTES // max(1, row_bytes))), row_bytes), np.uint8)
        for start in range(0, total, len(room)):
            rows = room[: total - start]
            self.read_bytes(name, start * row_bytes, rows)
            yield rows

    def close(self) -> None:
        """Do nothing: other parts may still be read from the source."""


def joint_sections(spec: ArraySpec, stored: Sequence[ArraySpec]) -> tuple[Section, ...]:
    """Return an array's sections with the block size of the arrays that it is stored in. Empty: they cannot be cut."""
    sections = [section for leaf in stored for section in leaf.sections or (None,)]
    blocks = {0 if section is None else section.block for section in sections}
    if len(blocks) != 1 or 0 in blocks:
        return ()
    block = blocks.pop()
    return tuple(replace(section, block=block) for section in spec.sections)


def narrowed(spec: ArraySpec, length: int) -> ArraySpec:
    """Return the spec of one device's part of an array, ``length`` long along the divided axis."""
    return replace(spec, shape=_with(spec.shape, spec.along, length), sections=())


def cut_parts(
    spec: ArraySpec, parts: Sequence[Part], pieces: Sequence[slice]
) -> tuple[list[Part], dict[str, Cut]] | None:
    """Return the stored parts that make up these pieces of an array, with new names. None: the layout forbids it."""
    rows = len(spec.shape) - 2  # along which parts are stacked
    if any(part.arrange is not as_stored or part.by_rows or len(part.shape) != len(spec.shape) for part in parts):
        return None
    if len(pieces) > 1 and spec.along != rows:
        return None
    kept, cuts = list[Part](), dict[str, Cut]()
    for piece in pieces:
        first = 0
        for part in parts:
            before = first if spec.along == rows else 0
            first += part.shape[rows]
            begin, end = max(0, piece.start - before), min(part.shape[spec.along], piece.stop - before)
            if begin < end:
                name = f"{part.name}[{begin}:{end}]"
                cuts[name] = Cut(part.name, spec.along, begin, end)
                kept.append(replace(part, name=name, shape=_with(part.shape, spec.along, end - begin)))
    return kept, cuts


def _with(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])
