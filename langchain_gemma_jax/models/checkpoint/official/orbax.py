"""Orbax checkpoints: the format of Kaggle and Google's buckets, and of the official library.

An Orbax folder is a key-value store of Zarr arrays, either in a few OCDBT files (``manifest.ocdbt``) or
as one folder per array. Both are read with TensorStore, as Orbax itself does, one array at a time.
Orbax would restore the whole tree at once, takes two seconds to import, and needs metadata that older
checkpoints lack. Nothing in the folder is ever unpickled.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_gemma_jax.errors import CheckpointNotFoundError, CorruptCheckpointError, UnsafeCheckpointError
from langchain_gemma_jax.models.checkpoint.official.gemma_shapes import check_all_used, find_config, find_naming
from langchain_gemma_jax.models.checkpoint.official.gemma_tree import StoredArray, TowerSource, picture_tower
from langchain_gemma_jax.models.checkpoint.official.zarr_rows import ZarrRows
from langchain_gemma_jax.models.configuration.links import real_file
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.tensor_source import Array

if TYPE_CHECKING:
    import tensorstore

MARKERS = ("manifest.ocdbt", "_METADATA")
"""A folder with one of these is an Orbax checkpoint."""

_UNFINISHED = ".orbax-checkpoint-tmp"
_DRIVERS = {".zarray": "zarr", "zarr.json": "zarr3"}
_INCOMPLETE = "The download, or the save, is probably incomplete."


def find_orbax(folder: Path) -> Path | None:
    """Return the Orbax checkpoint that is this folder or directly in it, or ``None``.

    Directly in it, because a download from Kaggle has ``tokenizer.model`` and the checkpoint in one
    folder, and trainers save the parameters in ``default`` or ``params`` of a step's folder.

    Raises:
        CheckpointNotFoundError: there are several.
    """
    if is_orbax(folder):
        return folder
    inner_folders = (
        sorted(inner for inner in folder.iterdir() if inner.is_dir() and is_orbax(inner)) if folder.is_dir() else []
    )
    if len(inner_folders) > 1:
        names = ", ".join(inner.name for inner in inner_folders)
        raise CheckpointNotFoundError(folder, "one Orbax checkpoint", names, "Give the path of the one to load.")
    return inner_folders[0] if inner_folders else None


def open_orbax(path: Path, config: ModelConfig | None = None) -> Checkpoint[OrbaxSource]:
    """Open the Gemma at ``path``; no array is read yet.

    The folder holds no configuration. If ``config`` is None, the shapes of all arrays identify the
    published size.

    Raises:
        CheckpointNotFoundError: there is no Orbax checkpoint, or no Gemma in it.
        CorruptCheckpointError: its files are missing or damaged.
        UnsafeCheckpointError: a link in it leads out of it.
        ConfigError: no configuration was given, and no published size has these shapes.
        TensorMismatchError: there are arrays that have no place in the given configuration.
        UnsupportedModelError: a Gemma 3n, LoRA adapters, or quantized weights.
    """
    folder = find_orbax(path)
    if folder is None:
        raise CheckpointNotFoundError(path, f"an Orbax checkpoint ({' or '.join(MARKERS)})", _what_is_in(path))
    source = OrbaxSource(folder)
    if config is None:
        from langchain_gemma_jax.models.configuration.catalog import known

        config = find_config(source.tower, known(), source.location)
    naming = find_naming(config, source.tower)
    check_all_used(config, naming, source.tower, source.location)
    return Checkpoint(config, source, naming)


class OrbaxSource(TowerSource):
    """The text tower of one Orbax folder. For a layer of a stacked checkpoint, only its own row is read."""

    def __init__(self, folder: Path) -> None:
        if _UNFINISHED in folder.name:
            raise CorruptCheckpointError(folder, "a finished save", "a folder that Orbax was still writing")
        _refuse_links(folder)
        arrays = _open_arrays(folder)
        tree = {key.replace(".", "/"): StoredArray(key, array.shape, array.dtype.name) for key, array in arrays.items()}
        super().__init__(tree, str(folder))
        self.pictures = picture_tower(tree)  # a Gemma 3's vision tower
        self._arrays = {key: ZarrRows(array) for key, array in arrays.items()}

    def read(self, name: str) -> Array:
        leaf = self.tower[name]
        with self._explained(name):
            array = self._arrays[leaf.key]
            return array.whole() if leaf.row is None else array.row(leaf.row)

    @property
    def tower_shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: leaf.shape for name, leaf in self.pictures.items()}

    def read_of_pictures(self, name: str) -> Array:
        """Return a whole array of the vision tower, by its name in ``pictures``."""
        leaf = self.pictures[name]
        try:
            return self._arrays[leaf.key].whole()
        except ValueError as error:
            expected = f"{name} {list(leaf.shape)} in {leaf.dtype}"
            raise CorruptCheckpointError(self.location, expected, _reason(error), _INCOMPLETE) from error

    def read_rows(self, name: str) -> Iterator[Array]:
        leaf = self.tower[name]
        if leaf.row is not None:
            yield self.read(name)
            return
        with self._explained(name):
            yield from self._arrays[leaf.key].blocks()

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            expected = f"{name} {list(self.shape(name))} in {self.dtype(name)}"
            raise CorruptCheckpointError(self.location, expected, _reason(error), _INCOMPLETE) from error

    def close(self) -> None:
        self._arrays = {}


def is_orbax(folder: Path) -> bool:
    """Return True if this folder itself is an Orbax checkpoint."""
    return any((folder / marker).is_file() for marker in MARKERS)


def _open_arrays(folder: Path) -> dict[str, tensorstore.TensorStore]:
    """Open every array in the folder, by key: shapes and dtypes are read, but no data."""
    import tensorstore

    root = f"{folder.absolute()}/"
    files = {"driver": "file", "path": root}
    is_ocdbt = (folder / "manifest.ocdbt").is_file()
    store: dict[str, object] = {"driver": "ocdbt", "base": files} if is_ocdbt else {**files}
    # A chunk that is absent from a database is all zeros; a chunk whose file is absent was lost.
    specs = {
        key: {
            "driver": driver,
            "kvstore": store | {"path": f"{'' if is_ocdbt else root}{key}/"},
            "fill_missing_data_reads": is_ocdbt,
        }
        for key, driver in _array_keys(folder, store)
    }
    if not specs:
        raise CorruptCheckpointError(folder, "arrays", "none", _INCOMPLETE)
    opening = {key: tensorstore.open(spec, open=True, read=True) for key, spec in specs.items()}
    try:
        arrays = {key: future.result() for key, future in opening.items()}
    except ValueError as error:
        raise CorruptCheckpointError(folder, "arrays in Zarr", _reason(error), _INCOMPLETE) from error
    for key, array in arrays.items():
        _check_chunks(folder, key, array)
    return arrays


def _check_chunks(folder: Path, key: str, array: tensorstore.TensorStore) -> None:
    """Refuse a chunk larger than its array: reading any of it allocates it whole, and only array shapes are checked."""
    for grid in (array.chunk_layout.read_chunk, array.chunk_layout.write_chunk):
        chunk = [part or 0 for part in grid.shape or ()]
        if any(part > max(1, whole) for part, whole in zip(chunk, array.shape, strict=False)):
            found = f"chunks of {chunk}"
            raise CorruptCheckpointError(folder, f"{key} {list(array.shape)} in chunks of at most that", found)


def _array_keys(folder: Path, store: dict[str, object]) -> list[tuple[str, str]]:
    import tensorstore

    try:
        keys = tensorstore.KvStore.open(store).result().list().result()
    except ValueError as error:
        raise CorruptCheckpointError(folder, "a list of arrays", _reason(error), _INCOMPLETE) from error
    split = (key.decode(errors="replace").rpartition("/") for key in keys)
    return [(array, _DRIVERS[file]) for array, _, file in split if file in _DRIVERS]


def _refuse_links(folder: Path) -> None:
    """Refuse links that lead out of the folder, except into the Hub's own cache: TensorStore follows every link."""
    snapshot = next((parent for parent in (folder, *folder.parents) if parent.parent.name == "snapshots"), folder)
    for where, folders, files in os.walk(folder):
        for name in files:
            real_file(snapshot, str(Path(where, name).relative_to(snapshot)))
        for inner in folders:
            if Path(where, inner).is_symlink():
                found = f"a link to {os.path.realpath(Path(where, inner))}"
                raise UnsafeCheckpointError(Path(where, inner), "a folder inside the model's folder", found)


def _reason(error: ValueError) -> str:
    """Return TensorStore's message without its trace of source lines."""
    return str(error).partition(" [")[0]


def _what_is_in(path: Path) -> str:
    if not path.is_dir():
        return "no folder" if not path.exists() else "a file"
    return ", ".join(sorted(inner.name for inner in path.iterdir())[:8]) or "an empty folder"
