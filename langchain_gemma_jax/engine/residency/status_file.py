"""Status files: each running engine writes its models and activity to a small file, for ``gemma-jax top``.

The engine does not depend on it, and works without it if it cannot be written. A folder that others can write to is not
used, and a file appears whole or not at all. The engine holds a lock on its file while it lives: a file without a lock
was left by a process that is gone, even if another process has its number now.
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

SECONDS = 2.0  # between two writes, while no model comes or goes
SHORTEST = 0.5  # seconds over which a rate is measured, at least
FORMAT = 4  # of a file: another number means that another version wrote it

_SHOWN = re.compile(r"[0-9]+-[0-9a-f]+\.json")  # a process, and a unique number
_UNFINISHED = re.compile(rf"\.[0-9a-f]+{re.escape(TEMPORARY)}")
_LARGEST = 2**20  # bytes of a file
_HUGE = 2**63  # larger than any number in a file
_UNUSABLE = (OSError, RuntimeError, InputError, UnsafeFolderError)  # a RuntimeError: there is no home folder


@dataclass(frozen=True)
class Activity:
    """An engine's activity at some time."""

    running: int = 0  # requests
    waiting: int = 0
    requests: int = 0  # finished ones
    generated_tokens: int = 0
    tokens_per_s: float = 0.0  # generated since the last measurement
    reused_tokens: int = 0
    prefilled_tokens: int = 0
    trips: int = 0  # of guards


@dataclass(frozen=True)
class ShownModel:
    """A model in a running process."""

    process: int
    name: str
    state: str
    nbytes: int
    host_kv: int
    used_at: float  # wall-clock time
    in_use: bool
    pinned: bool
    kv: int = 0
    devices: int = 1  # the number of devices that it is divided among; bytes are for each
    adapters: str = ""  # the names of those on the device


@dataclass(frozen=True)
class RunningEngine:
    """A running engine of this user, in any process."""

    process: int
    version: str  # of the package
    readable: bool = True  # False: another version wrote the file, in another format
    at: float = 0.0  # the wall-clock time of writing
    activity: Activity = field(default_factory=Activity)
    models: tuple[ShownModel, ...] = ()


class EngineActivity:
    """Measures an engine's activity. The owner thread reads it."""

    def __init__(self, scheduler: Scheduler, metrics: Metrics, events: Events) -> None:
        self._scheduler, self._metrics = scheduler, metrics
        self._trips, self._lock = 0, threading.RLock()  # a signal handler may come a second time
        self._rate, self._before = 0.0, (time.monotonic(), 0)
        events.subscribe(Tripped, self._tripped)

    def now(self) -> Activity:
        """Return the current activity."""
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
        self._shown: object = None  # the models and their states, as last written
        self._next = 0.0
        # The process, the engine's start time, by which files are sorted, and a random number.
        self._file = f"{os.getpid()}-{time.time_ns():016x}{os.urandom(4).hex()}.json"
        self._folder: Folder | None = None
        self._hold: Hold | None = None

    @property
    def is_due(self) -> bool:
        """True if the file is due to be written again."""
        return time.monotonic() >= self._next

    def show(self, statuses: Sequence[ModelStatus], activity: Callable[[], Activity] = Activity) -> None:
        """Write the file if a model came or went, if its use began or ended, or if it is due."""
        there = [(status.name, str(status.state), status.leases > 0, status.adapters) for status in statuses]
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
                adapters=", ".join(status.adapters),
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
            self._folder = None  # it may have been moved away: it is opened again the next time
            _log.debug("what is in memory is not shown to other processes: %s", type(error).__name__)

    def take_down(self) -> None:
        """Delete this engine's status file."""
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
    """Return the models of all running engines of this user."""
    return [each for engine in running_engines() for each in engine.models]


def running_engines() -> list[RunningEngine]:
    """Return all running engines of this user. Files of processes that are gone are deleted."""
    found: list[RunningEngine] = []
    with suppress(*_UNUSABLE):
        folder = _open()
        _clear_away(folder)
        for name in sorted(filter(_SHOWN.fullmatch, folder.names())):
            with suppress(OSError, DamagedError):
                found.append(_read(int(name.partition("-")[0]), folder.read(name, _LARGEST)))
    return found


def _clear_away(folder: Folder) -> None:
    """Delete the files of processes that are gone, which have no lock. Other files are not touched."""
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
        shown = None  # an incomplete file, or one that another program wrote
    version = shown.get("version") if isinstance(shown, dict) else None
    return RunningEngine(process, version if isinstance(version, str) else "", readable=False)


def _filled(kind: type[Shown], values: dict[str, object]) -> Shown:
    """Return an object of this class from JSON values, each checked for its type.

    Raises:
        TypeError: a value has another type. KeyError: a value is missing.
    """
    found: dict[str, Any] = {}
    for each in dataclasses.fields(kind):
        value = values[each.name]
        if type(value).__name__ != each.type and not (each.type == "float" and type(value) is int):
            raise TypeError(each.name)
        found[each.name] = value if each.type in {"str", "bool"} else _number(value)
    return kind(**found)


def _number(value: object) -> Any:
    if not isinstance(value, int | float) or not -_HUGE < value < _HUGE:  # False for NaN
        raise TypeError("number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("version")
    return value


def _open() -> Folder:
    path = cache_dir() / "running"
    return open_folder(path, path)
