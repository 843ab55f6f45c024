"""A check that a model's files do not change while they are read: else a load could mix two versions of a model.

Nothing locks a folder. So each file's stamp is taken before the first file is opened, and compared after the last one
was read: device and inode, size, and the times of change. Shards, configuration and tokenizer are compared together,
since each of them alone may be intact.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from langchain_gemma_jax.errors import CorruptCheckpointError
from langchain_gemma_jax.models.checkpoint.gguf_file_names import shards_of
from langchain_gemma_jax.models.checkpoint.sentence_transformers import LENGTH, MODULES, OF_MODULES, PROMPTS

Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the two times that change when a file is written to or replaced."""

_NAMES = frozenset({"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"})
_NAMES |= {MODULES, PROMPTS, LENGTH, "chat_template.jinja", "preprocessor_config.json", "processor_config.json"}
_VOCABULARY = ".model"
_SUFFIXES = (".safetensors", ".gguf", ".safetensors.index.json", _VOCABULARY)
_PART = 1 << 22  # bytes that are read at a time
_AGAIN = "Load the model again when no program writes to its files."


@dataclass(frozen=True)
class Unchanged:
    """The stamps of a model's files at one moment."""

    folder: Path
    stamps: Mapping[str, Stamp]  # by path relative to the folder

    @classmethod
    def now(cls, folder: Path) -> Unchanged:
        """Take the stamps now, of the files that a model is read from. Others may change, such as a log."""
        return cls(folder, dict(_stamps(folder)))

    def digest(self) -> str:
        """Return a digest of the files' names, sizes and bytes, which takes as long as reading them.

        Raises:
            OSError: one cannot be read.
        """
        found = hashlib.sha256()
        for name in sorted(self.stamps):
            path = Path(os.path.normpath(self.folder / name))
            found.update(f"{path.name}\0{path.stat().st_size}\0".encode())
            with path.open("rb", buffering=0) as opened:
                while part := opened.read(_PART):
                    found.update(part)
        return found.hexdigest()

    def check(self) -> None:
        """Compare with the files as they are now.

        Raises:
            CorruptCheckpointError: a file was written to, replaced, added or removed.
        """
        current = dict(_stamps(self.folder))
        changed = sorted(
            name for name in self.stamps.keys() | current.keys() if self.stamps.get(name) != current.get(name)
        )
        if changed:
            name, others = changed[0], len(changed) - 1
            what = "written to or replaced" if name in self.stamps and name in current else "added or removed"
            more = f", as {'was another' if others == 1 else f'were {others} others'}" if others else ""
            raise CorruptCheckpointError(
                self.folder / name, "the file that it was when loading began", f"that it was {what}{more}", _AGAIN
            )


def _stamps(folder: Path) -> Iterator[tuple[str, Stamp]]:
    """Yield name and stamp of the files that a model in this folder is read from. Of a file: its shards."""
    if folder.is_file():
        yield from _each(folder, folder.parent, (each.name for each in shards_of(folder)))
        return
    names = _names(folder)
    yield from _each(folder, folder, filter(_is_read, names))
    if MODULES in names:
        for name in names:
            read = (each for each in _names(folder / name) if OF_MODULES.fullmatch(f"{name}/{each}"))
            yield from _each(folder, folder / name, read)
    if names and not any(name == "tokenizer.json" or name.endswith(_VOCABULARY) for name in names):
        around = folder.resolve().parent  # Google's downloads have the vocabulary there
        yield from _each(folder, around, (name for name in _names(around) if name.endswith(_VOCABULARY)))
    if not any(name.endswith(".safetensors") for name in names):
        from langchain_gemma_jax.models.checkpoint.official.orbax import is_orbax

        for place in filter(is_orbax, (folder, *(folder / name for name in names))):
            for where, _, inner in os.walk(place):
                yield from _each(folder, Path(where), inner)


def _is_read(name: str) -> bool:
    return name in _NAMES or name.endswith(_SUFFIXES)


def _names(folder: Path) -> list[str]:
    try:
        return [each.name for each in folder.iterdir()]
    except (OSError, ValueError):  # opening the folder reports what is wrong with it
        return []


def _each(folder: Path, where: Path, names: Iterable[str]) -> Iterator[tuple[str, Stamp]]:
    for name in names:
        try:
            facts = (where / name).stat()
        except OSError:  # a link that leads nowhere
            continue
        stamp = facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
        yield os.path.relpath(where / name, folder), stamp
