"""What each running engine has in memory, as a small file of its own: for ``gemma-jax models`` in another process.

Nothing depends on it. Where it cannot be written, it is not there.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from langchain_gemma_jax.config import cache_dir
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.errors import InputError

SECONDS = 5.0  # between two writes, while nothing comes or goes

_numbers = count()


@dataclass(frozen=True)
class Notice:
    """A model in a process that runs."""

    process: int
    name: str
    state: str
    nbytes: int
    host_kv: int
    used_at: float  # by the clock on the wall
    in_use: bool
    pinned: bool


class Noticeboard:
    """The file of one engine. Only its owner thread writes it."""

    def __init__(self) -> None:
        self._shown: list[tuple[str, str, bool]] = []  # which models are there, and in use
        self._next = 0.0
        self._file: Path | None = None

    def show(self, statuses: Sequence[ModelStatus]) -> None:
        """Write what is there now: if a model came or went, if its use began or ended, or after a while."""
        there = [(status.name, str(status.state), status.leases > 0) for status in statuses]
        now = time.monotonic()
        if there == self._shown and now < self._next:
            return
        self._shown, self._next = there, now + SECONDS
        wall = time.time()
        notices = [
            Notice(
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
        with suppress(OSError, InputError):
            if self._file is None:
                folder = _folder()
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._file = folder / f"{os.getpid()}-{next(_numbers)}.json"
            fresh = self._file.with_suffix(f".{os.getpid()}.new")
            fresh.write_text(json.dumps([dataclasses.asdict(notice) for notice in notices]))
            fresh.replace(self._file)

    def take_down(self) -> None:
        """The engine ends."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
            self._file = None


def notices() -> list[Notice]:
    """What all engines of this user show. The files of processes that are gone are deleted."""
    found: list[Notice] = []
    try:
        files = sorted(_folder().glob("*.json"))
    except (OSError, InputError):
        return found
    for file in files:
        if not _is_running(file.name.partition("-")[0]):
            with suppress(OSError):
                file.unlink(missing_ok=True)
            continue
        with suppress(OSError, ValueError, TypeError, AttributeError):
            found += _read(json.loads(file.read_text()))
    return found


def _read(shown: Iterable[dict[str, object]]) -> list[Notice]:
    names = {field.name for field in dataclasses.fields(Notice)}
    return [Notice(**{name: each[name] for name in names}) for each in shown if names <= set(each)]  # type: ignore[arg-type]


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, and is somebody else's
        return True
    return True


def _folder() -> Path:
    return cache_dir() / "running"
