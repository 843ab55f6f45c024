"""What each running engine has in memory, as a small file of its own: for ``gemma-jax models`` in another process.

Nothing depends on it. Where it cannot be written, it is not there. A folder that others can write to is not used, and
a file is whole or not there. The engine holds its file as long as it lives: one that nobody holds was left by a process
that is gone, whichever process may have its number now.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from langchain_gemma_jax.config import cache_dir
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.claims import Hold, give_back, try_hold
from langchain_gemma_jax.private.folder import DamagedError, Folder, UnsafeFolderError, blemish, open_folder
from langchain_gemma_jax.private.writing import TEMPORARY, write_and_hold

_log = logging.getLogger(__name__)

SECONDS = 5.0  # between two writes, while nothing comes or goes

_SHOWN = re.compile(r"[0-9]+-[0-9a-f]+\.json")  # a process, and what no other engine has
_UNFINISHED = re.compile(rf"\.[0-9a-f]+{re.escape(TEMPORARY)}")
_LARGEST = 2**20  # bytes of a file
_UNUSABLE = (OSError, RuntimeError, InputError, UnsafeFolderError)  # the second: there is no home


@dataclass(frozen=True)
class ShownModel:
    """A model in a process that runs."""

    process: int
    name: str
    state: str
    nbytes: int
    host_kv: int
    used_at: float  # by the clock on the wall
    in_use: bool
    pinned: bool


class StatusFile:
    """The file of one engine. Only its owner thread writes it."""

    def __init__(self) -> None:
        self._shown: list[tuple[str, str, bool]] = []  # which models are there, and in use
        self._next = 0.0
        # The process, when this engine started, by which they are listed, and what no other one has.
        self._file = f"{os.getpid()}-{time.time_ns():016x}{os.urandom(4).hex()}.json"
        self._folder: Folder | None = None
        self._hold: Hold | None = None

    def show(self, statuses: Sequence[ModelStatus]) -> None:
        """Write what is there now: if a model came or went, if its use began or ended, or after a while."""
        there = [(status.name, str(status.state), status.leases > 0) for status in statuses]
        now = time.monotonic()
        if there == self._shown and now < self._next:
            return
        self._shown, self._next = there, now + SECONDS
        wall = time.time()
        shown_models = [
            ShownModel(
                process=os.getpid(),
                name=status.name,
                state=str(status.state),
                nbytes=status.nbytes,
                host_kv=status.host_kv,
                used_at=wall - status.idle_s,
                in_use=status.leases > 0,
                pinned=status.pinned,
            )
            for status in statuses
        ]
        try:
            self._write(json.dumps([dataclasses.asdict(notice) for notice in shown_models]).encode())
        except _UNUSABLE as error:
            self._folder = None  # it may have been moved away: the next time it is looked for anew
            _log.debug("what is in memory is not shown to other processes: %s", type(error).__name__)

    def take_down(self) -> None:
        """The engine ends."""
        folder, hold, self._folder, self._hold = self._folder, self._hold, None, None
        with suppress(OSError):
            if folder is not None and hold is not None:
                give_back(folder, self._file, hold)

    def _write(self, text: bytes) -> None:
        if self._folder is None:
            self._folder = _open()
            for name in self._folder.visible:
                _log.warning("others may look into %s, which was there already: it is left as it is", name)
            _clear_away(self._folder)
        hold, before = write_and_hold(self._folder, self._file, text), self._hold
        self._hold = hold
        if before is not None:
            before.release()


def shown_models() -> list[ShownModel]:
    """What all engines of this user show. The files of processes that are gone are deleted."""
    found: list[ShownModel] = []
    with suppress(*_UNUSABLE):
        folder = _open()
        _clear_away(folder)
        for name in sorted(filter(_SHOWN.fullmatch, folder.names())):
            with suppress(OSError, DamagedError, ValueError, TypeError, AttributeError):
                found += _read(json.loads(folder.read(name, _LARGEST)))
    return found


def _clear_away(folder: Folder) -> None:
    """Delete what processes left that are gone: files that nobody holds. Whatever else is there is not touched."""
    for name in folder.names():
        if _SHOWN.fullmatch(name) or _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                if blemish(folder.stat(name)) is None and (hold := try_hold(folder, name, os.O_RDWR)) is not None:
                    give_back(folder, name, hold)


def _read(shown: Iterable[dict[str, object]]) -> list[ShownModel]:
    names = {field.name for field in dataclasses.fields(ShownModel)}
    return [ShownModel(**{name: each[name] for name in names}) for each in shown if names <= set(each)]  # type: ignore[arg-type]


def _open() -> Folder:
    path = cache_dir() / "running"
    return open_folder(path, path)
