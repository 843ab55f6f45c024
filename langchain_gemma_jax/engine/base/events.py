"""Records of the engine's events, and the listeners that receive them.

The engine publishes each event once, where it happens. Counters, exporters and users' functions read the records and
change nothing. A listener is called at once, on the thread of the event: for ``Finished``, that is the owner thread,
which runs the device. So a listener must return at once, and do longer work on another thread. Times are from
``time.monotonic()``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langchain_gemma_jax.engine.base.program_key import ProgramKey

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Timings:
    """The durations of a request's phases, in seconds, measured by the owner thread."""

    queued_s: float  # from submission until its first chunk was begun
    prefill_s: float  # from then to the first token that the model chose
    first_token_s: float  # from submission; a token that a grammar forces comes before any chunk is read
    total_s: float


@dataclass(frozen=True)
class Finished:
    """A request is over, successfully or not."""

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
    compiled: int  # programs that were compiled while it ran, for any request
    timings: Timings
    number: int = 0  # the request's number, as in its ``Submitted``
    cold: bool = False  # it needed programs that had never run in this process
    token_s: tuple[float, ...] = ()  # the seconds of each token but the first, in order
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Submitted:
    """A request was submitted to the engine. Published in its caller's thread and context."""

    number: int
    model: str
    scope: str
    app: str
    at: float


@dataclass(frozen=True)
class PromptRead:
    """A chunk of a request's prompt was handed to the device. The one before it has been read.

    ``engine().events.subscribe(PromptRead, function)`` calls a function with each, on the engine's thread, and returns
    a function that ends this.

    Attributes:
        number: the request.
        model: its model.
        scope: its tenant.
        app: the application that it counts for.
        tokens: those of the prompt, up to the end of this chunk.
        total: those of the whole prompt.
        at: the time, by ``time.monotonic``.
    """

    number: int
    model: str
    scope: str
    app: str
    tokens: int
    total: int
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Refused:
    """A request was refused because too many wait. Published in its caller's thread."""

    number: int
    model: str
    scope: str
    app: str


@dataclass(frozen=True)
class ProgramMade:
    """A program was compiled, or fetched from the disk. Published in the thread that did so."""

    model: str
    kind: str  # "read", "step", ...
    seconds: float
    fetched: bool
    sizes: ProgramKey = ()  # the rest of its key: its bucket
    at: float = field(default_factory=time.monotonic)  # when it was ready


@dataclass(frozen=True)
class ModelLoaded:
    """A model came into memory, for the first time or again."""

    model: str
    seconds: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class ModelEvicted:
    """A model left memory, to make room or because it was not used."""

    model: str
    nbytes: int
    seconds: float
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Tripped:
    """A guard was tripped. Published in the thread in which that happened."""

    guard: str  # "recompile", "transfer", "residency" or "cold_start"
    app: str
    reason: str
    advice: str  # advice for the user
    policy: str  # the policy of the guard
    model: str = ""
    nbytes: int = 0  # the bytes that were copied, or that are too many
    site: str = ""  # the line of the user's code; empty: the engine's own code
    at: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        where = f" ({self.site})" if self.site else ""
        return f"{self.guard} guard: {self.reason}{where}.{' ' * bool(self.advice)}{self.advice}"


@dataclass(frozen=True)
class StepRouted:
    """A step of an agent was routed to one of several sizes."""

    size: str
    switched: bool  # another size than that of the step before
    escalated: bool  # a smaller size's answer was rejected


Record = TypeVar("Record")


class Events:
    """The listeners to an engine's records."""

    def __init__(self) -> None:
        self._listeners: tuple[tuple[type[Any], Callable[[Any], None]], ...] = ()

    def subscribe(self, kind: type[Record], listener: Callable[[Record], None]) -> Callable[[], None]:
        """Call a listener with each record of a kind from now on. Return a function that ends this."""
        entry = (kind, listener)
        self._listeners = (*self._listeners, entry)  # replaced, not changed: another thread may be iterating over it

        def unsubscribe() -> None:
            self._listeners = tuple(each for each in self._listeners if each is not entry)

        return unsubscribe

    def publish(self, record: object) -> None:
        """Publish a record: call the listeners to its kind. Their exceptions are logged, and go no further."""
        for kind, listener in self._listeners:
            if isinstance(record, kind):
                try:
                    listener(record)
                except Exception as error:  # noqa: BLE001  a listener's mistake must not end the engine
                    _log.warning("a listener to %s records raised %s", kind.__name__, type(error).__name__)
