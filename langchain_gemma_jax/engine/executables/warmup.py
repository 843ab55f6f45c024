"""Warm-up: makes every program that conversations can need, several at once, before requests come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import ENCODING, MOVING, PUT_ADAPTER, ProgramKey, without_adapters
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.executables.library import Library, ReadyProgram
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.models.hub.progress import is_wanted

_ORDER = {
    kind: number
    for number, kind in enumerate(
        ("empty", "read", "pick", "step", "draft", *ENCODING, "read_medium", *MOVING, PUT_ADAPTER)
    )
}


@dataclass(frozen=True)
class Warmup:
    """The result of a warm-up: the programs that it made, and the time that it saves."""

    programs: int
    compiled: int  # those of them that were compiled; the others were ready, or on disk
    seconds: float  # wall-clock time
    work_seconds: float  # the sum over all threads
    cold_start_s: float  # to trace and compile the programs of a first answer, one after the other
    warm_start_s: float | None  # to fetch the same programs from disk; None: there is no cache

    def __str__(self) -> str:
        text = f"{self.programs} programs, {self.compiled} of them compiled, in {self.seconds:.1f} s"
        if self.warm_start_s is None:
            return f"{text}. There is no cache on the disk: the next process compiles them again."
        return (
            f"{text}. What a first answer needs takes a new process {self.warm_start_s:.1f} s to fetch, and took "
            f"{self.cold_start_s:.1f} s to compile."
        )


def needed(keys: Iterable[ProgramKey], ladders: Ladders, max_context: int) -> list[ProgramKey]:
    """Return the programs for conversations of up to ``max_context`` tokens, in the order in which an agent needs them.

    A single conversation comes before several at once, and a short one before a longer one.
    """
    last = ladders.capacity(max_context)

    def rows(key: ProgramKey) -> int:
        if key[0] == "pick" and key[1] == ladders.picks:
            return 1  # behind a prompt, too
        return int(key[1]) if key[0] in {"pick", "step"} else 1

    def order(whole_key: ProgramKey) -> tuple[object, ...]:
        key, stacked = without_adapters(whole_key)
        return stacked is not None, rows(key) > 1, max(_capacities(key), default=0), _ORDER[str(key[0])], key[1:]

    known = (key for key in keys if all(size <= last for size in _capacities(key)))
    return sorted(known, key=order)


def needed_for_texts(keys: Iterable[ProgramKey], max_context: int) -> list[ProgramKey]:
    """Return the programs that make vectors of texts of up to ``max_context`` tokens, short texts first."""
    known = sorted((int(key[2]), int(key[1])) for key in keys)
    last = next((tokens for tokens, _ in known if tokens >= max_context), max_context)
    return [("embed", rows, tokens) for tokens, rows in known if tokens <= last]


def first_answer(ladders: Ladders) -> list[ProgramKey]:
    """Return the programs for a short prompt up to its second token."""
    capacity = ladders.capacities[0]
    return [("empty",), ("read", ladders.chunks[0], capacity), ("pick", ladders.picks), ("step", 1, capacity)]


def warm(
    library: Library,
    background: Background,
    keys: list[ProgramKey],
    needed_first: list[ProgramKey],
    clock: Clock,
    *,
    name: str,
    progress: bool | None,
) -> Warmup:
    """Make all programs. If one fails, the others are still made, and then its error is raised.

    Raises:
        ClosedError: the engine was closed in the meantime. DeadlineError: the time was up.
    """
    clock.now("compiling")
    began = time.perf_counter()
    waiting: list[Future[ReadyProgram]] = []
    try:
        waiting = [background.submit(lambda key=key: library.make(key)) for key in keys]  # type: ignore[misc]
        with _bar(name, len(keys), progress=progress) as advance:
            for _ in as_completed(waiting, clock.left):
                advance()
        made = dict(zip(keys, [future.result() for future in waiting], strict=True))
        seconds = time.perf_counter() - began
        # Not in this thread: the process may end while it runs, and must not while a program is being loaded.
        timing = (background.submit(partial(library.time_to_fetch, key)) for key in needed_first if key in made)
        fetched: list[float | None] = [future.result(clock.left) for future in timing]
    except CancelledError:
        raise ClosedError("The engine was closed before all programs were there.") from None
    except TimeoutError:
        if clock.left != 0.0:
            raise  # of a program's own
        there = sum(future.done() for future in waiting)
        raise clock.error(f"{there} of {len(keys)} programs are there; the next warm-up makes the others.") from None
    finally:
        for future in waiting:
            future.cancel()  # the caller was interrupted: programs that have not begun are not needed
    first = [made[key] for key in needed_first if key in made]
    took = [one for one in fetched if one is not None]
    return Warmup(
        programs=len(made),
        compiled=sum(not one.loaded for one in made.values()),
        seconds=seconds,
        work_seconds=sum(one.seconds for one in made.values()),
        cold_start_s=sum(one.cost for one in first),
        warm_start_s=sum(took) if len(took) == len(fetched) else None,
    )


def _capacities(key: ProgramKey) -> tuple[int, ...]:
    """Return how far the tables in a program's key reach: its last size, if it has tables of rows."""
    kind = without_adapters(key)[0][0]
    return (int(key[-1]),) if kind in {"read", "step", "draft", "read_medium"} else ()


@contextmanager
def _bar(name: str, total: int, *, progress: bool | None) -> Iterator[Callable[[], None]]:
    if not is_wanted(progress=progress):
        yield lambda: None
        return
    from tqdm import tqdm

    with tqdm(desc=f"Compiling {name}", total=total, unit="program", file=sys.stderr) as bar:
        yield bar.update
