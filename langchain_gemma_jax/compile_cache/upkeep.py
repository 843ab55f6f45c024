"""Looks at a store, for people: its entries, and those that are damaged."""

from __future__ import annotations

from typing import NamedTuple

from langchain_gemma_jax.compile_cache.entry import HEAD, peek
from langchain_gemma_jax.compile_cache.sweep import ENTRY, prove, read_manifest
from langchain_gemma_jax.private.folder import DamagedError, Folder


class Stored(NamedTuple):
    """An entry in a listing. Its header was read, and not proven."""

    name: str
    label: str
    bytes: int
    seconds: float
    """What its compile took: each use saves it."""
    last_used: float
    """Seconds since 1970."""


def entries(folder: Folder) -> list[Stored]:
    """What is kept, the most recently used first."""
    found = []
    for file in _files(folder):
        try:
            facts = folder.stat(file)
            name, label, seconds = peek(folder.read_head(file, HEAD))
        except (OSError, DamagedError):  # deleted just now, or of no use to anybody
            continue
        found.append(Stored(name, label, facts.st_size, seconds, facts.st_atime_ns / 1e9))
    return sorted(found, key=lambda stored: -stored.last_used)


def verify(folder: Folder, largest: int) -> list[str]:
    """The file names of all entries that are damaged, or are not what they were when they were listed."""
    listed = read_manifest(folder)
    damaged = []
    for file in _files(folder):
        try:
            facts = folder.stat(file)
            digest = prove(folder, file, largest)
            known = listed.get(file, ("", 0, 0, 0))
            if known[1:] == (facts.st_size, facts.st_mtime_ns, facts.st_ino) and known[0] != digest:
                damaged.append(file)
        except FileNotFoundError:
            continue
        except (OSError, DamagedError):
            damaged.append(file)
    return damaged


def _files(folder: Folder) -> list[str]:
    try:
        return [file for file in folder.names() if file.endswith(ENTRY)]
    except OSError:  # vanished
        return []
