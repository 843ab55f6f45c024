"""Starting a call: in the caller's thread or from an event loop, and within the call's time.

Work that may take long runs in threads kept for it, a few dozen at once, so that it delays no other work: encoding a
long text, compiling a grammar, importing JAX. Waiting for a model takes up no thread at all. All work in those threads
has a stop (``stopping.py``). The call's deadline, a caller that leaves and the end of the process set it off.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import AwaitedModel, Call, CallStart
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.host.error_copies import clear_functions
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early
from langchain_gemma_jax.engine.requests.clock import Clock, Steps, await_for, wait_for
from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.stopping import Stop, StoppedError, current, end_with_process

T = TypeVar("T")

AT_ONCE = 32  # calls that are being begun
EXIT_SECONDS = 1.0  # the most that the end of the process waits for work that was asked to stop

_called: ContextVar[tuple[object, float] | None] = ContextVar("called", default=None)
"""The model whose batch the call belongs to, and when the batch was asked for."""


_prepared: ContextVar[Callable[[], object] | None] = ContextVar("prepared", default=None)
"""A function to run once a call's prompt was made, and what its caller sent is no longer needed."""


def _threads() -> Background:
    return Background(AT_ONCE, name="gemma-jax-call")


_workers = _threads()


def _end_with_process() -> None:
    """Stop the work under way, and wait for it. Work that is still inside a library then is left behind."""
    end_with_process()
    if not _workers.close(EXIT_SECONDS):
        leave_early()


def _after_fork_in_child() -> None:
    global _workers  # noqa: PLW0603  the threads did not come along
    _workers = _threads()


atexit.register(_end_with_process)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def when_prepared(then: Callable[[], object]) -> None:
    """Have a function run, in any thread, as soon as this task's calls need nothing more of what the caller sent."""
    _prepared.set(then)


def prepared() -> None:
    """Run the function of ``when_prepared``: what the caller sent is a prompt now."""
    if (then := _prepared.get()) is not None:
        then()


@contextmanager
def called_together(model: object) -> Iterator[None]:
    """Date the calls of a model that are made inside to now, however long they wait until they begin."""
    token = _called.set((model, time.monotonic()))
    try:
        yield
    finally:
        _called.reset(token)


def clock_of(model: object, options: Options) -> Clock:
    """Return the clock of one call, which runs since it was called."""
    batch = _called.get()
    return Clock(options.timeout, began=batch[1] if batch is not None and batch[0] is model else None)


def start(call: CallStart) -> Call:
    """Have the engine work on an answer. It may take a while: a model is loaded, a prompt is encoded.

    Raises:
        InputError: the conversation or the options are not possible; other errors as ``engine().load`` and
            ``engine().submit`` have them. DeadlineError: the time was up.
    """
    clock = call.clock
    return wait_for(_steps(call, partial(_here if clock.until is None else _elsewhere, clock)), clock)


async def astart(call: CallStart) -> Call:
    """Have the engine work on an answer, as ``start`` does, while the event loop goes on."""
    return await await_for(_steps(call, partial(_elsewhere, call.clock)), call.clock)


def begin_here(call: CallStart) -> CallStart:
    """Begin a call in this thread, as a part of the work that it does anyway. ``astart`` goes on from there.

    It ends at the call's own deadline too, which may be sooner than that of the work around it.
    """
    stop = Stop(call.clock.until)
    with current().then(stop.ask):
        begun = _done(call.begin, stop, call.clock)
    if isinstance(begun, Call):
        prepared()
    return call


def begin(function: Callable[[], T], clock: Clock) -> T:
    """Run a function that takes a while, for as long as there is time.

    If it returns after its caller has left, its result is cancelled, if that is possible.
    """
    return wait_for(_here(clock, function) if clock.until is None else _elsewhere(clock, function), clock)


async def abegin(function: Callable[[], T], clock: Clock) -> T:
    """Run a function as ``begin`` does, while the event loop goes on."""
    return await await_for(_elsewhere(clock, function), clock)


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """Run a function in one of the threads, however long it takes, while the event loop goes on."""
    return await abegin(partial(function, *args), Clock())


def _steps(start: CallStart, run: Callable[[Callable[[], Any]], Steps[Any]]) -> Steps[Call]:
    found = start.begun
    if found is None:
        found = yield from run(start.begin)
    if isinstance(found, AwaitedModel):
        try:
            served = yield from found.steps()
        finally:
            found.cancel()
        found = yield from run(partial(start.submit, served))
    prepared()
    call: Call = found
    return call


def _here(clock: Clock, function: Callable[[], T]) -> Steps[T]:
    yield from ()  # the work is done in this thread: there is no future to wait for
    return _done(function, Stop(clock.until), clock)


def _elsewhere(clock: Clock, function: Callable[[], T]) -> Steps[T]:
    """Run a function in another thread."""
    stop = Stop(clock.until)
    context = copy_context()
    future: Future[T] = _workers.submit(lambda: context.run(_done_apart, function, stop, clock))
    try:
        yield future
        return future.result()
    except GeneratorExit:  # the caller has left
        stop.ask()
        future.cancel()
        future.add_done_callback(_drop)
        raise


def _done(function: Callable[[], T], stop: Stop, clock: Clock) -> T:
    """Run a function that looks at a stop.

    Raises:
        DeadlineError, ClosedError: it was stopped, as the time was up, or as the process ends.
    """
    try:
        with stop.over_this_work():
            stop.check()
            return function()
    except StoppedError as stopped:
        if clock.left == 0.0:
            raise clock.error() from stopped
        raise ClosedError("This process is ending, or no caller waited for this any more. Ask again.") from stopped


def _done_apart(function: Callable[[], T], stop: Stop, clock: Clock) -> T:
    """Run a function that looks at a stop. Its error keeps none of its data alive, which may be much."""
    try:
        return _done(function, stop, clock)
    except BaseException as error:
        clear_functions(error)
        raise


def _drop(future: Future[Any]) -> None:
    """Cancel the result of a function that returned after its caller had left."""
    if not future.cancelled() and future.exception() is None:
        found = future.result()
        for end in ("cancel", "close"):  # of a call; of a coroutine that is not awaited
            if hasattr(found, end):
                getattr(found, end)()
                return
