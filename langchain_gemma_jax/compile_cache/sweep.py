"""The sweep: before anything is read, and after each write, the folder holds what this package wrote, and no more.

The manifest lists the entries that were found good, by what changes when a file does. One that is still as listed is
not hashed again until it is read; so a sweep costs a look at each file. Whatever else is there is deleted. That is
also what heals: a program that is not found is compiled, and written again.
"""

from __future__ import annotations

import json
import os
import stat
from typing import NamedTuple, TypeAlias

from langchain_gemma_jax.compile_cache.entry import digest_of, file_of, seal, unseal
from langchain_gemma_jax.private.file_locks import give_back, take
from langchain_gemma_jax.private.folder import DamagedError, Folder, blemish
from langchain_gemma_jax.private.kept_files import CLAIM, evict, remove_unheld
from langchain_gemma_jax.private.writing import write_whole

MANIFEST = "manifest"
ENTRY = ".entry"
_SWEEPING = f"sweep{CLAIM}"
_LARGEST_MANIFEST = 2**26

Listed: TypeAlias = tuple[str, int, int, int]
"""Digest, size, time of the last change in nanoseconds, inode."""


class Swept(NamedTuple):
    """The files that a sweep deleted."""

    rejected: tuple[str, ...] = ()
    """File names of entries that were damaged, or not ours."""
    evicted: int = 0


def sweep(folder: Folder, cap: int, written: dict[str, Listed] | None = None) -> Swept:
    """Delete what does not belong, then the least recently used entries beyond ``cap`` bytes.

    Args:
        folder: of which every file is ours to delete. Folders in it are left alone.
        cap: bytes of all entries together.
        written: entries that this process has just written. They need not be hashed, nor are they what is deleted
            to keep the cap.

    Raises:
        OSError: a file could not be read, deleted or written. Reads are as safe without a sweep: they verify.
    """
    hold = take(folder, _SWEEPING, patience=0)
    if hold is None:  # another process is at it
        return Swept()
    try:
        return _sweep(folder, cap, written or {})
    finally:
        give_back(folder, _SWEEPING, hold)


def _sweep(folder: Folder, cap: int, written: dict[str, Listed]) -> Swept:
    listed = read_manifest(folder)
    known = listed | written
    good: dict[str, Listed] = {}
    seen: dict[str, os.stat_result] = {}
    rejected = []
    for name in folder.names():
        try:
            facts = folder.stat(name)
            if name.endswith(ENTRY) and not stat.S_ISDIR(facts.st_mode):
                good[name] = _good(folder, name, facts, known.get(name), cap)
                seen[name] = facts
            elif name != MANIFEST:
                remove_unheld(folder, name)
        except FileNotFoundError:  # another process deleted it just now
            continue
        except DamagedError:
            folder.remove(name)
            rejected.append(name)
    excess = sum(facts.st_size for facts in seen.values()) - cap
    evicted = evict(folder, {name: facts for name, facts in seen.items() if name not in written}, excess)
    for name in evicted:
        del good[name]
    if good != listed:
        _write_manifest(folder, good)
    return Swept(tuple(rejected), len(evicted))


def prove(folder: Folder, name: str, largest: int) -> str:
    """Read all of an entry. Gives its digest.

    Raises:
        DamagedError: it is none.
    """
    data = folder.read(name, largest)
    if file_of(unseal(data).name) != name:
        raise DamagedError("it is the entry of another name")
    return digest_of(data)


def _good(folder: Folder, name: str, facts: os.stat_result, known: Listed | None, cap: int) -> Listed:
    if fault := blemish(facts):
        raise DamagedError(fault)
    identity = (facts.st_size, facts.st_mtime_ns, facts.st_ino)
    if known is not None and known[1:] == identity:
        return known
    return prove(folder, name, cap), *identity


def read_manifest(folder: Folder) -> dict[str, Listed]:
    """The entries that were found good, by file name. None at all if the list is damaged: then all are hashed."""
    try:
        entry = unseal(folder.read(MANIFEST, _LARGEST_MANIFEST), MANIFEST)
        rows = json.loads(entry.payload).items()
        return {name: (digest, size, mtime, inode) for name, (digest, size, mtime, inode) in rows}
    except (FileNotFoundError, DamagedError, ValueError, TypeError, AttributeError):
        return {}


def _write_manifest(folder: Folder, good: dict[str, Listed]) -> None:
    payload = json.dumps(good, separators=(",", ":")).encode()
    write_whole(folder, MANIFEST, seal(MANIFEST, payload), payload)
