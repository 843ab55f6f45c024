"""A model's programs, compiled: each is made once a process, and fetched from the disk if it was ever made before.

    library = Library(programs, store, tally)
    library(("read", 16, 512), params, tokens, start, count, sequence)

A program that is on the disk is loaded as it is: it is neither traced nor lowered nor compiled. One
that is not is compiled and put there; while one process does so, others that need it wait for it.
Any thread may come here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias

import jax

from langchain_gemma_jax.compile_cache.store import Entry, Store
from langchain_gemma_jax.engine.base.events import Events, ProgramMade
from langchain_gemma_jax.engine.base.guards import CompileCost
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import fingerprint
from langchain_gemma_jax.engine.executables.background import workers
from langchain_gemma_jax.engine.executables.map_limit import room_for_a_program
from langchain_gemma_jax.engine.executables.remembered import LONGEST, CompileCosts, FirstNeeded
from langchain_gemma_jax.engine.executables.signatures import Signatures, lower
from langchain_gemma_jax.engine.host.error_names import named
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.clock import Standstills
from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.models.seams.placement import Placement

_log = OwnLog(__name__)

Waited: TypeAlias = Callable[[ProgramKey, float, str], None]
"""A receiver of the seconds that work stood still for a program, and of the reason: "compiling" or "fetching"."""

PATIENCE = 300.0  # seconds to wait for another process that compiles a program, before it is compiled here too
_LOOK = 0.5  # seconds between two looks at whether the engine was closed meanwhile
# XLA has hosts that compile one program share the trying out of kernels, and wait for each other's. One that found the
# program on its disk would never come.
_EACH_FOR_ITSELF: dict[str, str | bool] = {"xla_gpu_shard_autotuning": False}


@dataclass
class Tally:
    """Counts of the programs fetched and made, and the time that took, by all threads together."""

    hits: int = 0
    misses: int = 0
    seconds_saved: float = 0.0  # what those that were found had taken to make, less what fetching took
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    costs: CompileCosts = field(default_factory=CompileCosts, repr=False)
    events: Events = field(default_factory=Events, repr=False)
    standstills: Standstills = field(default_factory=Standstills, repr=False)  # of who runs programs, for a program
    making: int = 0  # programs that are being fetched or compiled now
    waiting: int = 0  # those that wait for a thread of the background to begin

    def hit(self, saved: float) -> None:
        with self.lock:
            self.hits += 1
            self.seconds_saved += saved

    def miss(self) -> None:
        with self.lock:
            self.misses += 1

    def reported(self) -> dict[str, Any]:
        """Return the counts and the programs that are waited for, by their names in a ``Report``."""
        stands = self.standstills.lasting()
        return {
            "cache_hits": self.hits,
            "cache_misses": self.misses,
            "cache_saved_s": self.seconds_saved,
            "programs_making": self.making,
            "programs_waiting": self.waiting,
            "standstill_s": 0.0 if stands is None else stands.end - stands.began,
            "standstill": "" if stands is None else stands.what,
        }

    def expects(self, more: int) -> None:
        """Count programs that wait for a thread to begin; with -1, one that waits no more."""
        with self.lock:
            self.waiting += more

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Count a program that is being made, for the length of a ``with`` block."""
        with self.lock:
            self.making += 1
        try:
            yield
        finally:
            with self.lock:
                self.making -= 1


@dataclass(frozen=True)
class ReadyProgram:
    """A program that is ready, and what that took."""

    call: Callable[..., Any]
    seconds: float
    loaded: bool  # from the disk; else it was compiled
    whole: bool  # it can be kept: see ``_compile``
    cost: float  # the seconds that compiling it took, then or now


class BackgroundThreads(Protocol):
    """The threads that make programs before they are needed: a ``Background``."""

    @property
    def closed(self) -> bool:
        """True if the engine was closed, so that no program is worth waiting for."""
        ...

    def submit(self, work: Callable[[], object]) -> object:
        """Have something done some time."""
        ...


class Library:
    """The compiled programs of one model in one place."""

    def __init__(
        self,
        programs: Programs,
        store: Store | None,
        tally: Tally,
        *,
        name: str = "",
        background: BackgroundThreads | None = None,
        patience: float = PATIENCE,
        making: Callable[[ProgramKey], None] | None = None,
    ) -> None:
        """``making`` is called with each program before it is made."""
        self.programs, self._store, self._tally, self._patience = programs, store, tally, patience
        self._signatures = Signatures(programs.shape, programs.placement)
        where = programs.placement
        self._how = None if where.here or where.platform == "tpu" else _EACH_FOR_ITSELF
        self._name, self._background, self._making = name, background, making
        self._family = "" if store is None else fingerprint.family(programs.shape, programs.placement)
        self._first_needed = None if store is None else FirstNeeded(store, self._family)
        self._soon: set[ProgramKey] = set()
        self._failed: set[ProgramKey] = set()  # in the background: a request that needs one tries again
        self._lock = threading.Lock()
        self._made: dict[ProgramKey, Future[ReadyProgram]] = {}
        self._calls: dict[ProgramKey, Callable[..., Any]] = {}
        self.workspace = 0  # bytes of the device's that its programs need while they run: the most of those made so far

    def of(self, key: ProgramKey, waited: Waited | None = None) -> Callable[..., Any]:
        """A program to call. The first call fetches or makes it, unless it is there.

        Where others make it too, it is made here and now: who is called with it has all begin it at once. ``waited``
        is called before it runs, and may raise.
        """
        if (call := self._calls.get(key)) is None:
            call = partial(self._first_call, key, waited) if self._making is None else self._first(key, waited)
        return call

    def first_calls(self) -> list[ProgramKey]:
        """Return the keys of the programs that were run first here, up to the first step's."""
        called = list(self._calls)
        return called[: next((at for at, key in enumerate(called, 1) if key[0] == "step"), LONGEST)]

    def first_needed(self) -> list[ProgramKey]:
        """Return the keys of the programs that an earlier process needed first."""
        return [] if self._first_needed is None else self._first_needed.recall()

    @property
    def makes_later(self) -> bool:
        """True if there is a background to make programs in."""
        return self._background is not None

    def there(self, key: ProgramKey) -> bool:
        """Return True if there is no wait for a program, nor for the error of one that could not be made."""
        made = self._made.get(key)
        return key in self._failed or (made is not None and made.done())

    def kept(self, key: ProgramKey) -> bool:
        """Return True if a program need not be compiled: it is there, or on the disk."""
        return self.there(key) or (self._store is not None and self._store.has(fingerprint.name(self._family, key)))

    def soon(self, keys: Iterable[ProgramKey]) -> None:
        """Have programs fetched or made in the background, several at once: they are needed next."""
        if self._background is not None:
            for key in keys:
                if key not in self._soon and not self.there(key):
                    self._soon.add(key)
                    self._tally.expects(1)
                    self._background.submit(partial(self._make_soon, key))

    def make(self, key: ProgramKey) -> ReadyProgram:
        """Fetch or make a program, unless it is there. Two threads never make the same one."""
        mine: Future[ReadyProgram] = Future()
        with self._lock:
            future = self._made.setdefault(key, mine)
        if future is not mine:
            return future.result()
        try:
            if self._making is not None:
                self._making(key)
            with room_for_a_program(), self._tally.one_more(), jax.disable_jit(disable=False):
                made = self._find(key)
        except BaseException as error:
            with self._lock:
                del self._made[key]
            mine.set_exception(error)
            raise
        self.workspace = max(self.workspace, _workspace(made.call))
        self._tally.events.publish(ProgramMade(self._name, str(key[0]), made.seconds, made.loaded, key[1:]))
        if not made.loaded:
            self._tally.costs.add(self._family, str(key[0]), made.seconds)
        self._failed.discard(key)
        mine.set_result(made)
        return made

    def _make_soon(self, key: ProgramKey) -> ReadyProgram:
        self._tally.expects(-1)
        try:
            return self.make(key)
        except Exception:
            self._failed.add(key)
            raise

    def distrust(self, error: Exception) -> bool:
        """Something that ran raised this. What came from the disk is deleted there, to be made again when it is needed.

        Gives whether there was anything: if not, it was not the disk's fault.
        """
        with self._lock:
            made = {key: future.result() for key, future in self._made.items() if future.done()}
            loaded = [key for key, one in made.items() if one.loaded]
            for key in loaded:
                del self._made[key]
                self._calls.pop(key, None)
                self._soon.discard(key)
        for key in loaded:
            if self._store is not None:
                self._store.discard(fingerprint.name(self._family, key))
        if loaded:
            _log.warning(
                "a program failed, and %d that came from the disk are compiled again: %s", len(loaded), named(error)
            )
        return bool(loaded)

    def cold_cost(self, keys: Iterable[ProgramKey]) -> CompileCost:
        """Return what compiling these will take, as far as they are not there."""
        costs, layers = self._tally.costs, len(self.programs.shape.layout)
        needs = [costs.estimate(self._family, str(key[0]), self._store, layers) for key in keys if not self.kept(key)]
        seconds = [each.seconds for each in needs]
        together = max(*seconds, sum(seconds) / workers()) if seconds else 0.0  # several at once
        return CompileCost(together, measured=all(each.measured for each in needs))

    def time_to_fetch(self, key: ProgramKey) -> float | None:
        """The seconds that fetching a program takes, tried. None: it is not on the disk, or cannot be loaded."""
        with room_for_a_program():
            made = self._fetch(fingerprint.name(self._family, key), key, count=False)
        return None if made is None else made.seconds

    def _first_call(self, key: ProgramKey, waited: Waited | None, *args: Any) -> Any:
        return self._first(key, waited)(*args)

    def _first(self, key: ProgramKey, waited: Waited | None) -> Callable[..., Any]:
        verb, began = "fetching" if self.kept(key) else "compiling", time.monotonic()
        with self._tally.standstills.here(f"{verb} {fingerprint.label(self._name, key).strip()}"):
            call = self._calls[key] = self.make(key).call
        if waited is not None:
            waited(key, time.monotonic() - began, verb)
        if self._first_needed is not None and self._first_needed.add(key):
            if self._background is None:
                self._first_needed.remember()
            else:
                self._background.submit(self._first_needed.remember)
        return call

    def _find(self, key: ProgramKey) -> ReadyProgram:
        if self._store is None:
            return self._compile(key)
        name = fingerprint.name(self._family, key)
        if (made := self._fetch(name, key)) is not None:
            return made
        with self._alone(self._store, name):  # if another thread is making it, this one waits
            if (made := self._fetch(name, key)) is not None:
                return made
            self._tally.miss()
            made = self._compile(key)
            self._keep(name, key, made)
        return made

    @contextmanager
    def _alone(self, store: Store, name: str) -> Iterator[None]:
        """While no other process makes a program; or when patience is lost.

        Raises:
            ClosedError: the engine was closed, and need not wait any more.
        """
        left = self._patience
        while self._background is None or not self._background.closed:
            wait = min(left, _LOOK)
            left -= wait
            with store.claim(name, wait) as alone:
                if alone or left <= 0:
                    yield
                    return
        raise ClosedError("The engine was closed while another process was compiling a program for it.")

    def _fetch(self, name: str, key: ProgramKey, *, count: bool = True) -> ReadyProgram | None:
        """Return a program from the disk. None: it is not there, or of no use."""
        store = self._store
        if store is None or (entry := store.get(name)) is None:
            return None
        began = time.perf_counter()
        try:
            call = _load(entry, self._signatures, key, self.programs.placement)
        except Exception as error:  # noqa: BLE001  whatever it is, the program can be made again
            _log.warning("a compiled program could not be loaded and is made again: %s: %s", entry.label, named(error))
            store.discard(name)
            return None
        took = time.perf_counter() - began
        if count:
            self._tally.hit(entry.seconds - took)
        return ReadyProgram(call, took, loaded=True, whole=False, cost=entry.seconds)

    def _compile(self, key: ProgramKey) -> ReadyProgram:
        """Compile it. One that JAX then finds in a cache of the user's own is not kept here.

        On the CPU, a program that was loaded and is serialized again lacks its code: it loads, and fails when it runs.
        """
        began = time.perf_counter()
        if self._store is None:
            compiled, whole = lower(self.programs, self._signatures, key).compile(self._how), False
        else:
            from langchain_gemma_jax.compile_cache.jax_side import bypass_store, hits_of_this_thread

            with bypass_store(), hits_of_this_thread() as hits:
                lowered = lower(self.programs, self._signatures, key)
                compiled, whole = lowered.compile(self._how), not hits
        took = time.perf_counter() - began
        return ReadyProgram(compiled, took, loaded=False, whole=whole, cost=took)

    def _keep(self, name: str, key: ProgramKey, made: ReadyProgram) -> None:
        if self._store is None or not made.whole:
            return
        try:
            payload = _dump(made.call)
        except Exception as error:  # noqa: BLE001  not every platform can; then JAX's own cache has it
            _log.warning("compiled programs cannot be kept on this platform: %s", named(error))
            return
        self._store.put(name, payload, label=fingerprint.label(self._name, key), seconds=made.seconds)


def _workspace(compiled: Any) -> int:
    """Bytes that a program needs while it runs, beside what it takes and gives. 0: this platform does not say."""
    try:
        return int(compiled.memory_analysis().temp_size_in_bytes)
    except Exception:  # noqa: BLE001  each platform has its own way not to
        return 0


def _dump(compiled: Any) -> bytes:
    """A compiled program as bytes."""
    from jax.experimental import serialize_executable

    payload: bytes
    payload, _, _ = serialize_executable.serialize(compiled)
    return payload


def _load(entry: Entry, signatures: Signatures, key: ProgramKey, where: Placement) -> Callable[..., Any]:
    """A compiled program of these bytes, which were verified: native code, so only this user may have written it."""
    from jax.experimental import serialize_executable

    arguments = jax.tree.structure((signatures.arguments(key), {}))
    result = jax.tree.structure(signatures.result(key))
    from langchain_gemma_jax.compile_cache.jax_side import quiet_loading

    with quiet_loading():
        loaded: Callable[..., Any] = serialize_executable.deserialize_and_load(
            entry.payload,
            arguments,
            result,
            backend=where.devices[0].client,
            execution_devices=list(where.devices),
        )
    return loaded
