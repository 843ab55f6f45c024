"""The sweep: before anything is read, and after each write, the folder holds what this package wrote, and no more.

The manifest lists the entries that were found good, by what changes when a file does. One that is still as listed is
not hashed again until it is read; so a sweep costs a look at each file. Whatever else is there is deleted. That is
also what heals: a program that is not found is compiled, and written anew.
"""

from __future__ import annotations

import json
import os
import stat
import time
from typing import NamedTuple, TypeAlias

from langchain_gemma_jax.compile_cache.entry import digest_of, file_of, seal, unseal
from langchain_gemma_jax.private.file_locks import give_back, take, try_hold
from langchain_gemma_jax.private.folder import DamagedError, Folder, blemish
from langchain_gemma_jax.private.writing import TEMPORARY, write_whole

MANIFEST = "manifest"
ENTRY, CLAIM = ".entry", ".claim"
_SWEEPING = f"sweep{CLAIM}"
_LARGEST_MANIFEST = 2**26
_DAY = 86_400 * 10**9

Listed: TypeAlias = tuple[str, int, int, int]
"""Digest, size, time of the last change in nanoseconds, inode."""


class Swept(NamedTuple):
    """What a sweep deleted."""

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
    last_used: dict[str, int] = {}
    rejected = []
    for name in folder.names():
        try:
            facts = folder.stat(name)
            if name.endswith(ENTRY) and not stat.S_ISDIR(facts.st_mode):
                good[name] = _good(folder, name, facts, known.get(name), cap)
                last_used[name] = facts.st_atime_ns
            elif name != MANIFEST:
                remove_rest(folder, name, facts)
        except FileNotFoundError:  # another process deleted it just now
            continue
        except DamagedError:
            folder.remove(name)
            rejected.append(name)
    evicted = _keep_cap(folder, cap, good, last_used, frozenset(written))
    if good != listed:
        _write_manifest(folder, good)
    return Swept(tuple(rejected), evicted)


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


def remove_rest(folder: Folder, name: str, facts: os.stat_result) -> None:
    """Delete what is no entry, unless somebody is at it."""
    if stat.S_ISDIR(facts.st_mode):
        return
    if name.endswith((CLAIM, TEMPORARY)) and blemish(facts) is None:
        if hold := try_hold(folder, name, os.O_RDWR):
            give_back(folder, name, hold)
        return
    folder.remove(name)


def _keep_cap(
    folder: Folder, cap: int, good: dict[str, Listed], last_used: dict[str, int], spared: frozenset[str]
) -> int:
    """Delete entries, the least recently used first, until all together keep to the cap. Gives their number."""
    excess = sum(size for _, size, _, _ in good.values()) - cap
    if excess <= 0:
        return 0
    # A clock that was wrong must not keep an entry for ever: one that will be used tomorrow goes first.
    tomorrow = time.time_ns() + _DAY
    used = {name: when if when < tomorrow else 0 for name, when in last_used.items()}
    evicted = 0
    for name in sorted(good.keys() - spared, key=lambda name: (used[name], name)):
        if excess <= 0:
            break
        folder.remove(name)
        excess -= good.pop(name)[1]
        evicted += 1
    return evicted


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
