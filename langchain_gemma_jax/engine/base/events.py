"""What happened, as records; and who wants to hear of it.

The engine tells of each thing once, where it happens. Counters, exporters and users' own functions read the records and
change nothing. A reader is called at once, on the thread on which it happened: for ``Finished`` the owner thread,
which runs the device. So it has to return at once, and put aside what takes longer. Times are ``time.monotonic()``'s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timings:
    """Where a request's time went, in seconds, as the owner thread saw it."""

    queued_s: float  # until its first chunk was begun
    prefill_s: float  # from there to the first token that the model chose
    first_token_s: float  # from submission; a token that a grammar forces comes before anything is read
    total_s: float


@dataclass(frozen=True)
class Finished:
    """A request is over, well or not."""

    model: str
    scope: str
    app: str
    outcome: str  # a finish reason, or the name of the error's class
    failed: bool
    prompt_tokens: int
    reused_tokens: int
    generated_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    forced_tokens: int
    compiled: int  # programs that were compiled meanwhile, for whichever request
    timings: Timings
    number: int = 0  # the request's, as its ``Submitted`` has it
    cold: bool = False  # programs were asked for that had never run in this process
    token_s: tuple[float, ...] = ()  # what each token but the first took, in their order
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Submitted:
    """A request was handed to the engine. Told in its caller's thread and context."""

    number: int
    model: str
    scope: str
    app: str
    at: float


@dataclass(frozen=True)
class Refused:
    """A request was not taken: too many wait. Told in its caller's thread."""

    number: int
    model: str
    scope: str
    app: str


@dataclass(frozen=True)
class ProgramMade:
    """A program was compiled, or fetched from the disk. Told in the thread that did so."""

    model: str
    kind: str  # "read", "step", ...
    seconds: float
    fetched: bool
    at: float = field(default_factory=time.monotonic)  # when it was ready


@dataclass(frozen=True)
class ModelLoaded:
    """A model came into memory, for the first time or again."""

    model: str
    seconds: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class ModelEvicted:
    """A model left memory, to make room or because nobody used it."""

    model: str
    nbytes: int
    seconds: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Tripped:
    """A guard saw what it watches for. Told in the thread in which that happened."""

    guard: str  # "recompile", "transfer", "residency" or "cold_start"
    app: str
    reason: str
    advice: str  # what to do
    policy: str  # what is done about it
    model: str = ""
    nbytes: int = 0  # that were copied, or are too many
    site: str = ""  # the line of the user's code; empty: the engine's own
    at: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        where = f" ({self.site})" if self.site else ""
        return f"{self.guard} guard: {self.reason}{where}.{' ' * bool(self.advice)}{self.advice}"


@dataclass(frozen=True)
class StepRouted:
    """A step of an agent was given to one of several sizes."""

    size: str
    switched: bool  # it is another size than the step before had
    escalated: bool  # a smaller size's answer was not taken


Record = TypeVar("Record")


class Events:
    """The readers of an engine's records."""

    def __init__(self) -> None:
        self._readers: tuple[tuple[type[Any], Callable[[Any], None]], ...] = ()

    def subscribe(self, kind: type[Record], reader: Callable[[Record], None]) -> Callable[[], None]:
        """Call a reader with each record of a kind, from now on. Returns what ends that."""
        entry = (kind, reader)
        self._readers = (*self._readers, entry)  # replaced, not changed: whoever is told something goes on undisturbed

        def unsubscribe() -> None:
            self._readers = tuple(each for each in self._readers if each is not entry)

        return unsubscribe

    def tell(self, record: object) -> None:
        """Hand a record to those who read its kind. Nothing that a reader raises gets out of here."""
        for kind, reader in self._readers:
            if isinstance(record, kind):
                try:
                    reader(record)
                except Exception as error:  # noqa: BLE001  a reader's mistake must not end the engine
                    _log.warning("a reader of %s records raised %s", kind.__name__, type(error).__name__)
