"""Faults to inject, and what has to be back to normal afterwards."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.models.loading.model import Model
from tests.waiting import LONG, until

# Few programs, all of them among those of `tiny.LADDERS`: what one file compiles the others have.
SMALL = Ladders(chunks=(16,), capacities=(32, 128), rows=(1, 4), draft=0)
LIMIT = LONG  # of what has to be given one


def greedy(count: int, **options: object) -> Sampling:
    return Sampling(max_tokens=count, ignore_eos=True, **options)  # type: ignore[arg-type]


def drawn(count: int, seed: int, **options: object) -> Sampling:
    return greedy(count, temperature=1.0, seed=seed, **options)


def resource_exhausted() -> Exception:
    """Return the error that JAX raises when the device's memory is full."""
    return jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes.")


@dataclass
class Fault:
    """Raises at the calls of some of ``DeviceAccess``'s methods for which ``when`` says so."""

    make: Callable[[], BaseException]
    when: Callable[[int, str, tuple[object, ...]], bool]  # the number of the call, from 1, the method, the program
    calls: int = 0
    raised: int = 0

    def call(self, name: str, key: tuple[object, ...] = ()) -> None:
        self.calls += 1
        if self.when(self.calls, name, key):
            self.raised += 1
            raise self.make()


@contextmanager
def injected(fault: Fault, methods: Sequence[str] = ("run", "put", "fetch")) -> Iterator[Fault]:
    """Have the device calls of every engine go through this fault first."""
    before = {name: getattr(DeviceAccess, name) for name in methods}

    def faulty(name: str) -> Callable[..., object]:
        def call(self: DeviceAccess, *args: object, **kwargs: object) -> object:
            fault.call(name, args[0] if name == "run" else ())  # type: ignore[arg-type]
            return before[name](self, *args, **kwargs)

        return call

    for name in methods:
        setattr(DeviceAccess, name, faulty(name))
    try:
        yield fault
    finally:
        for name, method in before.items():
            setattr(DeviceAccess, name, method)


@contextmanager
def slowed(seconds: float, before: Callable[[tuple[object, ...]], None] = lambda _: None) -> Iterator[None]:
    """Let each program take so long at least, and see which one it is."""

    def wait(_number: int, _name: str, key: tuple[object, ...]) -> bool:
        before(key)
        time.sleep(seconds)
        return False

    with injected(Fault(RuntimeError, wait), ["run"]):
        yield


@dataclass(frozen=True)
class Holdings:
    """The things in a process that leaks are made of."""

    arrays: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> Holdings:
        files = []
        for _ in range(4):  # an engine that comes to rest writes a small file, which is open for a moment
            files.append(len(list(Path("/proc/self/fd").iterdir())))
            time.sleep(0.01)
        return cls(len(jax.live_arrays()), threading.active_count(), min(files))

    def is_no_more_than(self, other: Holdings) -> bool:
        return self.arrays <= other.arrays and self.files <= other.files and self.threads <= other.threads


def assert_holds(expected: Holdings) -> None:
    """Wait for what a thread may just be putting down. What another test held and was freed meanwhile is no leak."""
    for _ in range(3000):  # looks, of some hundredths of a second each
        if (found := Holdings.now()).is_no_more_than(expected):
            return
    raise AssertionError(f"{found} is held, {expected} was before")


def idle_memory_dropped(engine: Engine) -> None:
    """Have every conversation forgotten that nobody runs, and the small arrays that are kept for the next step.

    Of these there are more or fewer, up to a limit, by how many steps there were. Requests that nobody reads any more
    may have a step in flight still, and would come to rest after the memory of the others was dropped.
    """
    work = engine._owner._work
    until(lambda: not engine._owner.call(lambda: work.scheduler.running or work.scheduler.waiting or work.flights))

    def drop() -> None:
        for runner in engine._owner.models.runners.values():
            runner.kv_store.evict_idle()
            runner.device.forget_kept()
            runner.forget_feed()
        engine._owner.evictor.publish()

    engine._owner.call(drop)


def outcome(generation: Generation) -> Completion | Exception:
    """Return the outcome of a generation."""
    try:
        return generation.result()
    except Exception as error:  # noqa: BLE001
        return error


def in_threads(count: int, work: Callable[[int], object]) -> list[object]:
    """Run ``work(0)`` to ``work(count - 1)`` at the same moment. Gives what each gave, or raised."""
    barrier, results = threading.Barrier(count), dict[int, object]()

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = work(index)
        except Exception as error:  # noqa: BLE001
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(count)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    return [results[index] for index in range(count)]


def assert_works(engine: Engine, served: Served, prompt: Sequence[int] = tuple(range(10, 20))) -> Completion:
    """The next ordinary request succeeds."""
    found = engine.submit(served, prompt, greedy(4), timeout=LIMIT).result()
    assert len(found.ids) == 4
    return found


def copied(model: Model) -> Model:
    """A model of its own, of the same shape: the same programs run it."""
    params = jax.tree.map(lambda array: jax.device_put(np.array(array), model.device), model.params)
    return replace(model, params=params)
