"""What each running engine has in memory and does, as a small file of its own: for ``gemma-jax top`` elsewhere.

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
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_gemma_jax.config import cache_dir
from langchain_gemma_jax.engine.base.events import Events, Tripped
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private.file_locks import Hold, give_back, try_hold
from langchain_gemma_jax.private.folder import DamagedError, Folder, UnsafeFolderError, blemish, open_folder
from langchain_gemma_jax.private.writing import TEMPORARY, write_and_hold

_log = logging.getLogger(__name__)

Shown = TypeVar("Shown", "ShownModel", "Activity")

SECONDS = 2.0  # between two writes, while nothing comes or goes
SHORTEST = 0.5  # seconds from which on a rate can be told
FORMAT = 3  # of a file: who finds another number there knows that another version wrote it

_SHOWN = re.compile(r"[0-9]+-[0-9a-f]+\.json")  # a process, and what no other engine has
_UNFINISHED = re.compile(rf"\.[0-9a-f]+{re.escape(TEMPORARY)}")
_LARGEST = 2**20  # bytes of a file
_HUGE = 2**63  # no number in one is as large
_UNUSABLE = (OSError, RuntimeError, InputError, UnsafeFolderError)  # the second: there is no home


@dataclass(frozen=True)
class Activity:
    """What an engine does, as it was at some time."""

    running: int = 0  # requests
    waiting: int = 0
    requests: int = 0  # that are over
    generated_tokens: int = 0
    tokens_per_s: float = 0.0  # generated lately
    reused_tokens: int = 0
    prefilled_tokens: int = 0
    trips: int = 0  # of guards


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
    kv: int = 0
    devices: int = 1  # that it is divided among; bytes are those of each


@dataclass(frozen=True)
class RunningEngine:
    """An engine of this user that runs in some process."""

    process: int
    version: str  # of the package
    readable: bool = True  # False: another version wrote the file, in a way that this one does not know
    at: float = 0.0  # when it was written, by the clock on the wall
    activity: Activity = field(default_factory=Activity)
    models: tuple[ShownModel, ...] = ()


class EngineActivity:
    """Watches what an engine does. The owner thread asks."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, events: Events) -> None:
        self._scheduler, self._metrics = scheduler, metrics
        self._trips, self._lock = 0, threading.RLock()  # a signal handler may come a second time
        self._rate, self._before = 0.0, (time.monotonic(), 0)
        events.subscribe(Tripped, self._tripped)

    def now(self) -> Activity:
        """Return what is going on."""
        metrics, now = self._metrics, time.monotonic()
        since, tokens = self._before
        if now - since >= SHORTEST:
            self._rate = (metrics.generated_tokens - tokens) / (now - since)
            self._before = now, metrics.generated_tokens
        running = len(self._scheduler.running)
        return Activity(
            running=running,
            waiting=len(self._scheduler.waiting),
            requests=metrics.requests,
            generated_tokens=metrics.generated_tokens,
            tokens_per_s=self._rate if running else 0.0,
            reused_tokens=metrics.reused_tokens,
            prefilled_tokens=metrics.prefilled_tokens,
            trips=self._trips,
        )

    def _tripped(self, _: Tripped) -> None:
        with self._lock:
            self._trips += 1


class StatusFile:
    """The file of one engine. Only its owner thread writes it."""

    def __init__(self) -> None:
        self._shown: object = None  # which models are there, and in use
        self._next = 0.0
        # The process, when this engine started, by which they are listed, and what no other one has.
        self._file = f"{os.getpid()}-{time.time_ns():016x}{os.urandom(4).hex()}.json"
        self._folder: Folder | None = None
        self._hold: Hold | None = None

    @property
    def is_due(self) -> bool:
        """Whether what is shown has become old."""
        return time.monotonic() >= self._next

    def show(self, statuses: Sequence[ModelStatus], activity: Callable[[], Activity] = Activity) -> None:
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
                kv=status.kv,
                devices=status.devices,
            )
            for status in statuses
        ]
        try:
            shown = {
                "format": FORMAT,
                "version": str(getattr(sys.modules.get("langchain_gemma_jax"), "__version__", "")),
                "at": wall,
                "activity": dataclasses.asdict(activity()),
                "models": [dataclasses.asdict(each) for each in shown_models],
            }
            self._write(json.dumps(shown).encode())
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
    """Return the models that all engines of this user show."""
    return [each for engine in running_engines() for each in engine.models]


def running_engines() -> list[RunningEngine]:
    """Return what all engines of this user show. The files of processes that are gone are deleted."""
    found: list[RunningEngine] = []
    with suppress(*_UNUSABLE):
        folder = _open()
        _clear_away(folder)
        for name in sorted(filter(_SHOWN.fullmatch, folder.names())):
            with suppress(OSError, DamagedError):
                found.append(_read(int(name.partition("-")[0]), folder.read(name, _LARGEST)))
    return found


def _clear_away(folder: Folder) -> None:
    """Delete what processes left that are gone: files that nobody holds. Whatever else is there is not touched."""
    for name in folder.names():
        if _SHOWN.fullmatch(name) or _UNFINISHED.fullmatch(name):
            with suppress(OSError):
                if blemish(folder.stat(name)) is None and (hold := try_hold(folder, name, os.O_RDWR)) is not None:
                    give_back(folder, name, hold)


def _read(process: int, text: bytes) -> RunningEngine:
    try:
        shown = json.loads(text)
        if isinstance(shown, dict) and shown.get("format") == FORMAT:
            return RunningEngine(
                process=process,
                version=_text(shown["version"]),
                at=_number(shown["at"]),
                activity=_filled(Activity, shown["activity"]),
                models=tuple(_filled(ShownModel, each) for each in shown["models"]),
            )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        shown = None  # a file that is not whole, or that somebody else wrote
    version = shown.get("version") if isinstance(shown, dict) else None
    return RunningEngine(process, version if isinstance(version, str) else "", readable=False)


def _filled(kind: type[Shown], values: dict[str, object]) -> Shown:
    """Return the values as what they were, each checked for its type.

    Raises:
        TypeError: they are no such values. KeyError: some are missing.
    """
    found: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        value = values[each.name]
        if type(value).__name__ != each.type and not (each.type == "float" and type(value) is int):
            raise TypeError(each.name)
        found[each.name] = value if each.type in {"str", "bool"} else _number(value)
    return kind(**found)


def _number(value: object) -> Any:
    if not isinstance(value, int | float) or not -_HUGE < value < _HUGE:  # which nothing is that is no number
        raise TypeError("number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("version")
    return value


def _open() -> Folder:
    path = cache_dir() / "running"
    return open_folder(path, path)
