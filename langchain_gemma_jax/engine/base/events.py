"""What happened, as records; and who wants to hear of it.

The engine tells of each thing once, where it happens. Counters, exporters and users' own functions read the records and
change nothing. A reader is called at once, on the thread on which it happened: for ``Finished`` the owner thread,
which runs the device. So it has to return at once, and put aside what takes longer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
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
