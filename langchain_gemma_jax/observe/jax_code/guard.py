"""``guard``: the four guards around any block of JAX code, and around the block's requests to the engine."""

from __future__ import annotations

import sys
import sysconfig
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, Token
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from langchain_gemma_jax.engine.api.process import configure, running_engine
from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes, show_bytes
from langchain_gemma_jax.engine.base.events import Tripped
from langchain_gemma_jax.engine.base.guards import KINDS, MINUTE, Asking, Policies, asking, react
from langchain_gemma_jax.engine.base.metrics import CompileCounter
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.jax_code.code_report import CodeReport, Sightings
from langchain_gemma_jax.observe.jax_code.entrances import Entrances

SHAPES = 8  # an operation outside jax.jit may be compiled for this many shapes at one place; more are recompiles
HEAVY = 2**20  # bytes: placing this much at once may be placing a model
LISTED = 16  # single numbers of one call that are taken for a list
LOOK_SECONDS = 0.25  # between two sums over all live arrays

_watching: ContextVar[guard | None] = ContextVar("watching", default=None)
_entrances = Entrances(_watching.get)


class guard:  # noqa: N801  it is used like a function
    """The four guards around a block of JAX code: Flax, torchax, or your own.

        with guard(recompile="raise", transfer="warn", app="my agent") as g:
            agent(...)
        print(g.report())

    *recompile*: XLA compiles a function again at the same place. *transfer*: a host array, or a Python list, is handed
    to JAX without ``jax.device_put``, or an array moves from one device to another. *residency*: the same line places a
    megabyte or more again and again, or more than ``budget`` is on the devices. *cold start*: compiling takes longer
    than ``deadline``. The block's requests to the engine have the same guards and the same ``app``. A guard counts what
    its own thread or task does, and what is started from there with its context, as ``asyncio.to_thread`` does.

    Args:
        recompile: the action of this guard: "off", "warn", "raise" or "callback". None: as configured for the process.
        transfer: the action of this guard, likewise.
        residency: the action of this guard, likewise.
        cold_start: the action of this guard, likewise.
        app: the name that trips are counted under.
        compiles: the most programs that the block may compile. None: each function once at each place.
        budget: the most memory that arrays on the devices may take: bytes, or a text such as "2GB". None: no limit.
        deadline: seconds that the block may take. None: no limit.
        placements: the most times a minute that one line may place a megabyte or more.
        on_trip: the function that the policy "callback" hands each trip to. None: that of ``configure(on_trip=...)``.

    Raises:
        InputError: an argument is not possible.
        GuardError: inside the block, by a guard that is set to "raise".
    """

    def __init__(
        self,
        *,
        recompile: str | None = None,
        transfer: str | None = None,
        residency: str | None = None,
        cold_start: str | None = None,
        app: str = "",
        compiles: int | None = None,
        budget: int | str | None = None,
        deadline: float | None = None,
        placements: int = 3,
        on_trip: Callable[[Tripped], object] | None = None,
    ) -> None:
        settings = configure()
        named = dict(zip(KINDS, (recompile, transfer, residency, cold_start), strict=True))
        self._own = {kind: policy for kind, policy in named.items() if policy is not None}
        self._policies = Policies.of(self._own, Policies.of(settings.guards))
        self._on_trip = settings.on_trip if on_trip is None else on_trip
        for name, value in (("app", app), ("compiles", compiles), ("deadline", deadline), ("placements", placements)):
            _check(name, value)
        if "callback" in vars(self._policies).values() and self._on_trip is None:
            raise InputError('guard: expected a function for "callback" in guard(..., on_trip=...), found None.')
        self.app, self._most_compiles, self._deadline, self._most_placements = app, compiles, deadline, placements
        self._budget = None if budget is None else parse_bytes("budget", budget)
        self.around: guard | None = None  # the guard whose block this one is in
        self._seen = Sightings()
        self._all: tuple[Sightings, ...] = (self._seen,)  # with those of the guards around it
        self._tokens: tuple[Token[Any], Token[Any]] | None = None
        self._lock = threading.RLock()
        self._began = self._looked = self._seconds = 0.0
        self._compiled: Counter[tuple[str, int]] = Counter()
        self._placed: dict[int, deque[float]] = {}
        self._served: set[int] = set()  # threads whose compile JAX's cache has just served
        self._reported: set[str] = set()  # limits that are reported once: "deadline", "budget"
        self._not_watched: dict[str, str] = {}
        self._evicted_before = 0
        self._left: int | None = 0  # models that had been evicted when the block was over; None: it is not

    def __enter__(self) -> Self:
        from jax import monitoring

        if self._tokens is not None:
            raise InputError("guard: this one is entered already. Make another one for each block and thread.")
        if problem := _entrances.open():
            self._not_watched["transfer"] = problem
        monitoring.register_event_duration_secs_listener(self._on_duration)
        monitoring.register_event_listener(self._on_event)
        self.around, self._began = _watching.get(), time.monotonic()
        self._evicted_before, self._left = _evicted() - self._models_evicted(), None
        self._all = (self._seen, *(() if self.around is None else self.around.everything))
        asks = Asking(self.app or asking.get().app, self._own or asking.get().guards)
        self._tokens = _watching.set(self), asking.set(asks)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        from jax import monitoring

        if self._tokens is None:
            raise InputError("guard: this one was not entered.")
        watching, asks = self._tokens
        self._tokens = None
        _watching.reset(watching)
        asking.reset(asks)
        monitoring.unregister_event_duration_listener(self._on_duration)
        monitoring.unregister_event_listener(self._on_event)
        if "transfer" not in self._not_watched:
            _entrances.close()
        self._seconds += time.monotonic() - self._began
        self._left = _evicted()
        if error is None:
            self._look_at_memory(now=True)

    def report(self) -> CodeReport:
        """Return a report of the block so far."""
        now = 0.0 if self._tokens is None else time.monotonic() - self._began
        return self._seen.report(self.app, self._seconds + now, self._not_watched, self._models_evicted())

    def _models_evicted(self) -> int:
        """Return how many models have left memory since the block began, or while it lasted."""
        return (_evicted() if self._left is None else self._left) - self._evicted_before

    @property
    def everything(self) -> tuple[Sightings, ...]:
        """The counts of this guard and of the guards around it."""
        return self._all

    # JAX's events.

    def _watches(self) -> bool:
        """Return True if the current context is inside the block."""
        watch = _watching.get()
        while watch is not None and watch is not self:
            watch = watch.around
        return watch is self

    def _on_event(self, event: str, **_: object) -> None:
        if event == CompileCounter.SERVED and self._watches():
            self._served.add(threading.get_ident())

    def _on_duration(self, event: str, duration_secs: float, **details: str | int) -> None:
        if event != CompileCounter.COMPILED or not self._watches():
            return
        seconds = duration_secs
        name = str(details.get("fun_name") or "a function")
        at, own, here = time.monotonic() - self._began, of_jax(), place()
        with self._lock:
            served = threading.get_ident() in self._served
            self._served.discard(threading.get_ident())
            self._compiled[name, here] += 1
            times = self._compiled[name, here]
        all_of_them = self._seen.compiled(at, seconds, served=served)
        if _watching.get() is not self:
            return  # an inner guard reports it
        most, site = self._most_compiles, call_site()
        if most is not None and all_of_them > most:
            self._trip(
                "recompile",
                f"XLA compiled {name} in {seconds:.2f} s: {all_of_them} programs in a block that may compile {most}",
                "Give every call the same shapes: pad lengths to a few sizes, and warm those up before the block.",
                site=site,
            )
        elif most is None and times > (SHAPES if own else 1):
            what = f"the operation {name}, outside jax.jit," if own else name
            self._trip(
                "recompile",
                f"XLA compiled {what} {times} times at the same place, now in {seconds:.2f} s",
                "Its arguments have new shapes, dtypes or static values each time: pad lengths to a few sizes, and "
                "keep what changes out of static arguments.",
                site=site,
            )
        if self._deadline is not None and self._seen.compile_s > self._deadline and "deadline" not in self._reported:
            self._reported.add("deadline")
            self._trip(
                "cold_start",
                f"XLA compiled for {self._seen.compile_s:.2f} s so far, and the block may take {self._deadline:g} s",
                "Compile before the clock runs: call each function once at start-up, and keep what is compiled on the "
                "disk (importing langchain_gemma_jax sees to that).",
                site=site,
            )
        self._look_at_memory()

    def to_device(self, arrays: Sequence[Any], *, explicit: bool) -> None:
        """Count host arrays that are about to be copied to a device."""
        large = [array for array in arrays if getattr(array, "size", 1) > 1]  # single numbers are part of a call ...
        listed = len(arrays) - len(large) >= LISTED  # ... unless they are a list
        nbytes = sum(_nbytes(array) for array in arrays)
        unasked = 0 if explicit else len(arrays) if listed else len(large)
        implicit = nbytes if listed else sum(_nbytes(array) for array in large)
        for seen in self._all:
            seen.add(copies=len(arrays), to_device=nbytes, implicit=unasked)
            seen.add(implicit_bytes=implicit if unasked else 0)
        if listed and not explicit:
            self._trip(
                "transfer",
                f"{len(arrays) - len(large)} single numbers were handed to one compiled function, as a Python list of "
                "them is: each is an argument and a copy of its own, and another length is another program",
                "Make one array of the list, once: jax.device_put(numpy.array(the_list)).",
                nbytes=nbytes,
                site=call_site(),
            )
        elif large and not explicit:
            self._trip(
                "transfer",
                f"{show_bytes(nbytes)} of host memory were copied to the device because they were handed to JAX",
                "Put them there once with jax.device_put, and hand over the result; or keep them on the device.",
                nbytes=nbytes,
                site=call_site(),
            )
        elif nbytes >= HEAVY:
            self._note_placement(nbytes)
        if nbytes >= HEAVY:
            self._look_at_memory(coming=nbytes)

    def between_devices(self, sizes: Sequence[int], *, explicit: bool) -> None:
        """Count arrays that are about to be copied from one device to another."""
        nbytes, unasked = sum(sizes), 0 if explicit else len(sizes)
        for seen in self._all:
            seen.add(copies=len(sizes), between=nbytes, implicit=unasked, implicit_bytes=nbytes if unasked else 0)
        if unasked:
            self._trip(
                "transfer",
                f"{show_bytes(nbytes)} moved from one device to another: a function's arguments lay on several",
                "Put them on one device, once: jax.device_put(x, device).",
                nbytes=nbytes,
                site=call_site(),
            )

    def to_host(self, nbytes: int, *, explicit: bool) -> None:
        """Count an array that is about to be copied from a device to the host."""
        for seen in self._all:
            seen.add(to_host=nbytes)
        if not explicit:
            self._trip(
                "transfer",
                f"{show_bytes(nbytes)} were read back from the device because Python looked at them",
                "Decide on the device, with jnp.where or jax.lax.cond, or read results back with jax.device_get.",
                nbytes=nbytes,
                site=call_site(),
            )

    def _note_placement(self, nbytes: int) -> None:
        now, here = time.monotonic(), place()
        with self._lock:
            times = self._placed.setdefault(here, deque(maxlen=1000))
            times.append(now)
            count = sum(at > now - MINUTE for at in times)
            if thrashes := count > self._most_placements:
                times.clear()  # this is reported; the count starts again
        if thrashes:
            self._trip(
                "residency",
                f"the same line placed {show_bytes(nbytes)} on the device {count} times within a minute",
                "Weights that come and go each time have no room, or are not kept: keep what jax.device_put returned, "
                "and share it between steps.",
                nbytes=nbytes,
                site=call_site(),
            )

    def _look_at_memory(self, *, coming: int = 0, now: bool = False) -> None:
        """Compare the bytes of all live arrays, and those about to come, with the budget.

        If no bytes are coming, this is done at most every ``LOOK_SECONDS``.
        """
        due = coming or now or time.monotonic() >= self._looked + LOOK_SECONDS
        if self._budget is None or "budget" in self._reported or not due:
            return
        import jax

        used = coming + sum(array.nbytes for array in jax.live_arrays() if not array.is_deleted())
        self._looked = time.monotonic()
        if used > self._budget:
            self._reported.add("budget")
            self._trip(
                "residency",
                f"{show_bytes(used)} are on the devices, and the budget is {show_bytes(self._budget)}",
                "Delete what is no longer needed, share weights between steps, or allow more: guard(budget=...).",
                nbytes=used - self._budget,
                site=call_site(),
            )

    def _trip(self, kind: str, reason: str, advice: str, *, nbytes: int = 0, site: str = "") -> None:
        policy: str = getattr(self._policies, kind)
        engine = running_engine()
        if kind == "transfer" and engine is not None:
            engine.guards.trips.copied_unasked(nbytes)
        if policy == "off":
            return
        record = Tripped(kind, self.app, reason, advice, policy, nbytes=nbytes, site=site)
        for seen in self._all:
            seen.tripped(record)
        if engine is not None:  # its metrics and alerts cover the whole process
            engine.guards.trips.add(record)
            engine.events.publish(record)
        react(record, self._on_trip)


def _evicted() -> int:
    """Return the models that have left the memory of this process's engine, if there is one."""
    engine = running_engine()
    return 0 if engine is None else sum(counts.evictions for counts in engine.tally.by_model.copy().values())


def _nbytes(value: Any) -> int:
    """Return the bytes of an array, or of a number that JAX has given a dtype."""
    return int(value.nbytes) if hasattr(value, "nbytes") else int(value.dtype.itemsize)


def _check(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    if name == "app" and not isinstance(value, str):
        raise InputError(f"app: expected a name, found {value!r}.")
    if name == "deadline" and value is not None and not number:
        raise InputError(f"deadline: expected seconds from 0, or None, found {value!r}.")
    if name in {"compiles", "placements"} and value is not None and not (number and isinstance(value, int)):
        raise InputError(f"{name}: expected a whole number from 0, found {value!r}.")


_OURS = str(Path(__file__).parents[2])
_LIBRARIES = ("site-packages", "dist-packages")


def call_site() -> str:
    """Return file, line and function of the innermost frame that belongs to no library; "" if there is none."""
    for frame in frames():
        if not is_library(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
    return ""


def place() -> int:
    """Return a hash of the stack, library code included: the same lines give the same number."""
    return hash(tuple((id(frame.f_code), frame.f_lineno) for frame in frames()))


def of_jax() -> bool:
    """Return True if the function being compiled is one of JAX's own, such as an operation outside ``jax.jit``."""
    for frame in frames():
        code = frame.f_code
        if code.co_name == "cache_miss" and code.co_filename.endswith("pjit.py"):
            module = getattr(frame.f_locals.get("fun"), "__module__", None) or ""
            return module == "jax" or module.startswith("jax.")
        if code.co_name == "apply_primitive":
            return True
    return False


def frames() -> Iterator[FrameType]:
    """Yield the frames from the caller's caller outwards."""
    frame = sys._getframe(2)  # noqa: SLF001  Python has no other way to look at one frame after the other
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


@cache
def is_library(file: str) -> bool:
    """Return True if a file belongs to an installed package or to Python, or if the code has no file."""
    paths = sysconfig.get_paths()
    inside = (paths["stdlib"], paths["platstdlib"], _OURS)
    return file.startswith(("<frozen", "<string>", *inside)) or any(each in file for each in _LIBRARIES)
