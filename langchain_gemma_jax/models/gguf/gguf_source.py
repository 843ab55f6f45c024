"""The tensors of a GGUF file or of its shards."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from langchain_gemma_jax.errors import CheckpointNotFoundError, CorruptCheckpointError, TensorMismatchError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import shards_of
from langchain_gemma_jax.models.checkpoint.open_file import OpenFile
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.gguf.header import Header, TensorEntry, read_header
from langchain_gemma_jax.models.gguf.mixture import mixture
from langchain_gemma_jax.models.packed.from_file import BlockSource
from langchain_gemma_jax.models.seams.tensor_source import PIECE_BYTES, Array, Cut, CutTensors, TensorSource

_PLAIN: Mapping[str, np.dtype[np.generic]] = {
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
}

FACTOR = ".scale"
"""The end of the name of a tensor by which the products of another one, that ends in ".weight", are multiplied."""


@dataclass(frozen=True)
class _Shard:
    file: OpenFile
    header: Header


class GgufSource(BlockSource):
    """The tensors of a model in one file, or in several."""

    shared = True

    def __init__(self, path: Path, shards: Collection[_Shard]) -> None:
        self.location, self._shards = str(path), tuple(shards)
        self._where = {name: shard for shard in self._shards for name in shard.header.tensors}

    @property
    def header(self) -> Header:
        """The header of the first file, which has the metadata."""
        return self._shards[0].header

    @property
    def mixture(self) -> str:
        return mixture(shard.header for shard in self._shards)

    def names(self) -> Collection[str]:
        return self._where.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        return self.entry(name).shape

    def dtype(self, name: str) -> str:
        kind = self.entry(name).kind.name
        return _PLAIN[kind].name if kind in _PLAIN else kind

    def block_format(self, name: str) -> str:
        return self.entry(name).kind.name

    def read(self, name: str) -> Array:
        entry = self.entry(name)
        tensor = np.empty(entry.shape, self._plain(name))
        self._where[name].file.fill(tensor, entry.begin)
        return tensor

    def read_into(self, name: str, target: Array) -> bool:
        self._plain(name)
        self._where[name].file.fill(target, self.entry(name).begin)
        return True

    def read_rows(self, name: str) -> Iterator[Array]:
        entry, dtype = self.entry(name), self._plain(name)
        inner = entry.shape[1:]
        for rows in self._pieces(name, entry.shape[0], math.prod(inner) * dtype.itemsize):
            yield rows.view(dtype).reshape(-1, *inner)

    def read_blocks(self, name: str) -> Iterator[Array]:
        entry = self.entry(name)
        blocks = entry.shape[-1] // entry.kind.elements
        for rows in self._pieces(name, math.prod(entry.shape[:-1]), blocks * entry.kind.nbytes):
            yield rows.reshape(-1, blocks, entry.kind.nbytes)

    def factor_name(self, name: str) -> str | None:
        factor = f"{name.removesuffix('.weight')}{FACTOR}"
        return factor if name.endswith(".weight") and factor in self._where else None

    def read_factors(self, name: str) -> Array:
        factor = self.factor_name(name)
        if factor is None:
            raise KeyError(name)
        return self.read(factor)

    def nbytes(self, name: str) -> int:
        entry = self.entry(name)
        return math.prod(entry.shape) // entry.kind.elements * entry.kind.nbytes

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        self._where[name].file.fill(target, self.entry(name).begin + begin)

    def cut(self, cuts: Mapping[str, Cut]) -> TensorSource:
        return _CutBlocks(self, cuts)

    def close(self) -> None:
        for shard in self._shards:
            shard.file.close()

    def _pieces(self, name: str, total: int, row_bytes: int) -> Iterator[Array]:
        """Yield the tensor, as many rows at a time as fit in the processor's cache, all in the same buffer."""
        file, entry = self._where[name].file, self.entry(name)
        room = np.empty((max(1, min(total, PIECE_BYTES // row_bytes)), row_bytes), np.uint8)
        for start in range(0, total, len(room)):
            rows = room[: total - start]
            file.fill(rows, entry.begin + start * row_bytes)
            yield rows

    def entry(self, name: str) -> TensorEntry:
        """Return a tensor's entry in the file's table."""
        return self._where[name].header.tensors[name]

    def _plain(self, name: str) -> np.dtype[np.generic]:
        kind = self.entry(name).kind.name
        if kind not in _PLAIN:
            raise TensorMismatchError(self.location, f"{name!r} in one of {', '.join(_PLAIN)}", kind)
        return _PLAIN[kind]


class _CutBlocks(CutTensors, BlockSource):
    """Parts of a file's tensors, cut at blocks."""

    def __init__(self, stored: GgufSource, cuts: Mapping[str, Cut]) -> None:
        super().__init__(stored, cuts)
        self._file = stored

    def block_format(self, name: str) -> str:
        return self._file.block_format(self._cuts[name].name)

    def read_blocks(self, name: str) -> Iterator[Array]:
        shape, kind = self.shape(name), self._file.entry(self._cuts[name].name).kind
        for rows in self.pieces(name, math.prod(shape[:-1])):
            yield rows.reshape(-1, shape[-1] // kind.elements, kind.nbytes)

    def factor_name(self, name: str) -> str | None:
        return self._file.factor_name(self._cuts[name].name)

    def read_factors(self, name: str) -> Array:
        cut, shape = self._cuts[name], self.shape(name)
        factors = self._file.read_factors(cut.name)
        return factors[cut.begin : cut.end] if len(shape) > 2 and cut.axis == 0 else factors


def open_source(path: Path) -> GgufSource:
    """Open the tensors of the model in a file, or in shards: then ``path`` is any of them.

    Raises:
        CheckpointNotFoundError: there is no such file, or a shard is missing.
        CorruptCheckpointError: a header is malformed, or the shards do not belong together.
    """
    paths = shards_of(path)
    with ExitStack() as opened:
        shards = []
        for each in paths:
            if not each.exists() and len(paths) > 1:
                advice = "Download the missing files of the model."
                raise CheckpointNotFoundError(
                    path.parent, f"the {len(paths)} shards of a model", f"no {each.name}", advice
                )
            # A link that the caller named is followed. Shards found by name must not lead out of the folder.
            named = len(paths) == 1 and each.is_file()
            file = OpenFile(each.resolve() if named else real_file(each.parent, each.name), each)
            opened.callback(file.close)
            shards.append(_Shard(file, read_header(file)))
        _check_shards(shards)
        opened.pop_all()
    return GgufSource(paths[0], shards)


def _check_shards(shards: list[_Shard]) -> None:
    """Check that each shard has the number in its name, and that no tensor is in two."""
    seen: dict[str, Path] = {}
    for number, shard in enumerate(shards):
        path, metadata = shard.file.path, shard.header.metadata
        count = metadata.get("split.count", 1) or 1
        if count != len(shards):
            advice = "Give the file that llama.cpp's gguf-split wrote, by its own name." if count != 1 else ""
            expected = f"one of {len(shards)} shards, by its name" if len(shards) > 1 else "a whole model, by its name"
            raise CorruptCheckpointError(path, expected, f"split.count {short(count)}", advice)
        if (found := metadata.get("split.no", 0)) != number:
            raise CorruptCheckpointError(path, f"shard {number} by its own split.no", short(found))
        for name in shard.header.tensors:
            if name in seen:
                raise CorruptCheckpointError(
                    path, f"no tensor twice, as {short(name)} is", f"also in {seen[name].name}"
                )
            seen[name] = path
    promised = shards[0].header.metadata.get("split.tensors.count", len(seen))
    if promised != len(seen):
        path = shards[0].file.path
        raise CorruptCheckpointError(path, f"{short(promised)} tensors in all, as split.tensors.count", f"{len(seen)}")
