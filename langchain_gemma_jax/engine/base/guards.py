"""Guards watch for the four costs that this engine promises to avoid. A trip is counted, and then the policy applies.

*recompile*: a program that is not on the ladders, one that is first needed after ``warmup``, or one that a request
waits long for once its model has answered. *transfer*: host memory that is passed to a program directly. *residency*:
models over the budget, or one that is evicted and loaded again and again. *cold start*: a deadline that is shorter
than compiling takes.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from langchain_gemma_jax.config import compile_wait
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.events import Events, ModelEvicted, ModelLoaded, Tripped
from langchain_gemma_jax.engine.host.own_log import show_problem
from langchain_gemma_jax.engine.host.warning_sink import WarningSink, warn, warning_sink
from langchain_gemma_jax.errors import GuardError, InputError

POLICIES = ("off", "warn", "raise", "callback")
MOST_APPS = 100  # applications with counters of their own; all others share one
OTHERS = "(others)"
MINUTE = 60.0


class GuardWarning(UserWarning):
    """A guard that is set to "warn" was tripped."""


@dataclass(frozen=True, kw_only=True)
class Policies:
    """The policy of each guard: "off", "warn", "raise" or "callback"."""

    recompile: str = "warn"
    transfer: str = "warn"
    residency: str = "warn"
    cold_start: str = "warn"

    @classmethod
    def of(cls, given: object, rest: Policies | None = None) -> Policies:
        """Return the policies of a setting: one for all guards, or some by name, with the others from ``rest``.

        Raises:
            InputError: there is no such guard, or no such policy.
        """
        if isinstance(given, Policies):
            return given
        if isinstance(given, str):
            return cls(**dict.fromkeys(KINDS, _checked(given)))
        if not isinstance(given, Mapping):
            raise InputError(
                f"guards: expected one of {', '.join(POLICIES)}, or some by name such as "
                f'{{"recompile": "raise"}}, found {given!r}.'
            )
        if unknown := sorted(str(name) for name in given if name not in KINDS):
            raise InputError(f"guards: expected names such as {', '.join(KINDS)}, found {', '.join(unknown)}.")
        return dataclasses.replace(rest or cls(), **{name: _checked(policy) for name, policy in given.items()})


KINDS = tuple(each.name for each in dataclasses.fields(Policies))


def _checked(policy: object) -> str:
    if policy not in POLICIES:
        raise InputError(f"guards: expected one of {', '.join(POLICIES)}, found {policy!r}.")
    return str(policy)


class Asker(Protocol):
    """The one that work is done for, such as a request."""

    @property
    def app(self) -> str: ...

    @property
    def guards(self) -> object: ...  # policies of its own; None: as configured

    @property
    def warn_to(self) -> WarningSink | None: ...  # the receiver of warnings; None: they are shown in this process


class SeenRequest(Asker, Protocol):
    """The part of a request's arguments that guards read."""

    @property
    def model(self) -> Hashable: ...

    @property
    def deadline(self) -> float | None: ...


class CompileCost(NamedTuple):
    """The time that compiling takes."""

    seconds: float
    measured: bool = True  # on this machine; False: an estimate from other machines


class Begun(Protocol):
    """The part of a request's progress that guards use."""

    watched: bool
    cold: bool


class Asks(Protocol):
    """The part of a request that guards use."""

    @property
    def asked(self) -> SeenRequest: ...

    @property
    def progress(self) -> Begun: ...


@dataclass(frozen=True)
class Asking:
    """An application with its guards' policies, for all requests that are made in a context."""

    app: str = ""
    guards: object = None
    warn_to: WarningSink | None = None


_NO_ASKING = Asking()
asking: ContextVar[Asking] = ContextVar("asking", default=_NO_ASKING)
"""The application of this thread or task, for calls that do not name one."""


class GuardSettings(Protocol):
    """The current settings of guards."""

    @property
    def guards(self) -> object: ...

    @property
    def on_trip(self) -> Callable[[Tripped], object] | None: ...

    @property
    def loads_per_minute(self) -> int: ...

    @property
    def compile_wait(self) -> float | None: ...


class Trips:
    """Counts of guards' trips, by kind, and by kind and application. Any thread may add to it."""

    def __init__(self) -> None:
        self.by_kind: dict[str, int] = {}
        self.by_app: dict[tuple[str, str], int] = {}
        self.implicit_copies = self.implicit_bytes = 0  # those that the transfer guard saw, whatever its policy
        self._apps: set[str] = set()
        self._lock = threading.RLock()  # a signal handler may come a second time

    def copied_unasked(self, nbytes: int) -> None:
        """Count an implicit copy."""
        with self._lock:
            self.implicit_copies += 1
            self.implicit_bytes += nbytes

    def add(self, record: Tripped) -> None:
        """Count one trip by guard and app."""
        with self._lock:
            if len(self._apps) < MOST_APPS:
                self._apps.add(record.app)
            app = record.app if record.app in self._apps else OTHERS
            self.by_kind[record.guard] = self.by_kind.get(record.guard, 0) + 1
            self.by_app[record.guard, app] = self.by_app.get((record.guard, app), 0) + 1

    def reported(self) -> dict[str, Any]:
        """Return the counts under their names in a ``Report``."""
        return {
            "guard_trips": dict(self.by_kind),
            "trips_by_app": self.copied(),
            "implicit_copies": self.implicit_copies,
            "implicit_bytes": self.implicit_bytes,
        }

    def copied(self) -> dict[str, dict[str, int]]:
        """Return the trips by kind and, of each kind, by application."""
        with self._lock:
            found: dict[str, dict[str, int]] = {}
            for (kind, app), count in self.by_app.items():
                found.setdefault(kind, {})[app] = count
            return found


@dataclass
class Guards:
    """The guards of one engine.

    guards = Guards(lambda: settings, events)
    guards.trip("recompile", "the program ('step', 3, 512) is not on the ladders")
    """

    settings: Callable[[], GuardSettings]
    events: Events = field(default_factory=Events)
    trips: Trips = field(default_factory=Trips)
    _evicted: set[str] = field(default_factory=set)
    _returned: dict[str, deque[float]] = field(default_factory=dict)  # the times at which evicted models came back

    def __post_init__(self) -> None:
        self.events.subscribe(ModelEvicted, self._note_evicted)
        self.events.subscribe(ModelLoaded, self._note_loaded)

    def policy(self, kind: str, asker: Asker | None = None) -> str:
        """Return the policy of a guard for this asker."""
        policies = Policies.of(self.settings().guards)
        if asker is not None and asker.guards is not None:
            policies = Policies.of(asker.guards, policies)
        policy: str = getattr(policies, kind)
        return policy

    @property
    def compile_wait(self) -> float:
        """The seconds that a request may wait for the compiler."""
        given = self.settings().compile_wait
        return compile_wait() if given is None else given

    def asked_by(self, app: str, guards: object) -> Asking:
        """Return the application and policies of a call: its own or, if not given, those of the ``guard`` around it.

        Raises:
            InputError: there is no such guard or policy, or no function for "callback".
        """
        asks = asking.get()
        found = Asking(app or asks.app, asks.guards if guards is None else guards, warning_sink.get())
        if found.guards is not None:
            policies = Policies.of(found.guards)
            if "callback" in vars(policies).values() and self.settings().on_trip is None:
                raise InputError('guards: expected a function for "callback" in configure(on_trip=...), found None.')
        return found

    def trip(self, kind: str, reason: str, asker: Asker | None = None, **details: Any) -> None:
        """Count a trip, publish it, and apply the guard's policy.

        Args:
            kind: the guard.
            reason: the observation.
            asker: the request, if it was one.
            details: fields of ``Tripped``: ``advice``, ``model``, ``nbytes``, ``site``.

        Raises:
            GuardError: the policy is "raise", or warnings are errors in this process.
        """
        if kind == "transfer":
            self.trips.copied_unasked(details.get("nbytes", 0))
        if (policy := self.policy(kind, asker)) == "off":
            return
        app = "" if asker is None else asker.app
        record = Tripped(kind, app, reason, details.pop("advice", ""), policy, **details)
        self.trips.add(record)
        self.events.publish(record)
        react(record, self.settings().on_trip, None if asker is None else asker.warn_to)

    def begins(self, request: Asks, excess: Callable[[], int], cold_cost: Callable[[], CompileCost]) -> None:
        """Check a request before any work for it: that its model does not thrash, and that its deadline is possible.

        Args:
            request: the request.
            excess: returns the bytes in memory over the budget.
            cold_cost: returns the cost of compiling what it needs.

        Raises:
            GuardError: a guard was tripped whose policy is "raise".
        """
        if request.progress.watched:
            return
        request.progress.watched = True
        model: str = getattr(request.asked.model, "name", "")
        if (count := self._loads_within_a_minute(model)) > (most := self.settings().loads_per_minute):
            self._returned.pop(model, None)  # this is reported; the count starts again
            self.trip(
                "residency",
                f"{model} was evicted and loaded again {count} times within a minute, more than {most}",
                request.asked,
                model=model,
                advice="Two models take turns in memory that has room for one: allow more with "
                "configure(memory_budget=...), pin one with engine().pin(...), or use smaller models.",
            )
        if (over := excess()) > 0:
            self.trip(
                "residency",
                f"{show_bytes(over)} more than the budget are in memory, and in use",
                request.asked,
                model=model,
                nbytes=over,
                advice="Unload a model, use shorter contexts, or allow more with configure(memory_budget=...).",
            )
        if request.asked.deadline is not None:
            left = request.asked.deadline - time.monotonic()
            if (needs := cold_cost()).seconds > left:
                where = "on this machine" if needs.measured else "elsewhere; here nothing was compiled so far"
                self.trip(
                    "cold_start",
                    f"the deadline is in {max(0.0, left):.2f} s, and compiling what the request needs takes about "
                    f"{needs.seconds:.2f} s {where}",
                    request.asked,
                    model=model,
                    advice=_warm_up(model),
                )

    def too_late_to_load(self, model: str, asker: Asker, cost: CompileCost | None) -> None:
        """Look at a call whose time was up while its model was loaded: whether compiling would have come on top.

        Args:
            model: which one it is.
            asker: whose call it is.
            cost: what compiling a first answer's programs will take; None: that is not known yet, and on this machine
                nothing was compiled so far.

        Raises:
            GuardError: the policy says so.
        """
        if cost is None or cost.seconds > 0:
            needs = "some seconds more" if cost is None else f"about {cost.seconds:.2f} s more"
            self.trip(
                "cold_start",
                f"the deadline passed while {model} was loaded, and compiling what a first answer needs takes {needs}",
                asker,
                model=model,
                advice=_warm_up(model),
            )

    def _note_evicted(self, record: ModelEvicted) -> None:
        self._evicted.add(record.model)

    def _note_loaded(self, record: ModelLoaded) -> None:
        if record.model in self._evicted:
            self._returned.setdefault(record.model, deque(maxlen=1000)).append(record.at)

    def _loads_within_a_minute(self, model: str) -> int:
        since = time.monotonic() - MINUTE
        return sum(at >= since for at in list(self._returned.get(model, ())))


def _warm_up(model: str) -> str:
    return f"Warm up first with engine().warmup({model!r}), which keeps the programs on the disk, or allow more time."


def react(record: Tripped, on_trip: Callable[[Tripped], object] | None, warn_to: WarningSink | None = None) -> None:
    """Apply the policy of a guard to its trip. A warning goes to ``warn_to`` or, with None, is shown in this process.

    Raises:
        GuardError: the policy is "raise", or warnings are errors in this process.
    """
    if record.policy == "raise":
        raise GuardError(str(record))
    if record.policy == "warn":
        try:
            warn(GuardWarning(str(record)), warn_to, stacklevel=4)
        except GuardWarning as warning:
            raise GuardError(str(warning)) from None
        except Exception:  # noqa: BLE001  warnings.showwarning may be the user's
            show_problem("warnings.showwarning")
    elif on_trip is not None:
        try:
            on_trip(record)
        except Exception:  # noqa: BLE001  the function is the user's
            show_problem("on_trip")
