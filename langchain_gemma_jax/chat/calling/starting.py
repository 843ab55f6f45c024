"""How a call is begun by those who wait for it: in their thread, in an event loop, and for as long as they have time.

What may take long is done in threads of its own, a few at once, that nobody else's work has to wait behind: encoding
a long text, compiling a grammar, importing JAX. Waiting for a model takes up no thread at all. Whatever is done there
has a stop (``stopping.py``), which its deadline, its caller's leaving and the end of the process reach.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import AwaitedModel, Call, CallStart
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.host.error_copies import clear_functions
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early
from langchain_gemma_jax.engine.requests.clock import Clock, Steps, await_for, wait_for
from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.stopping import Stop, StoppedError, end_with_process

T = TypeVar("T")

AT_ONCE = 32  # calls that are being begun
EXIT_SECONDS = 1.0  # that the end of the process waits for what was asked to stop

_called: ContextVar[tuple[object, float] | None] = ContextVar("called", default=None)
"""The model whose batch the call belongs to, and when the batch was asked for."""


_prepared: ContextVar[Callable[[], object] | None] = ContextVar("prepared", default=None)
"""What is done when all that a call reads was made of what its caller sent."""


def _threads() -> Background:
    return Background(AT_ONCE, name="gemma-jax-call")


_beside = _threads()


def _end_with_process() -> None:
    """Stop what is being done, and wait for that. What is inside of a library then is left behind."""
    end_with_process()
    if not _beside.close(EXIT_SECONDS):
        leave_early()


def _after_fork_in_child() -> None:
    global _beside  # noqa: PLW0603  the threads did not come along
    _beside = _threads()


atexit.register(_end_with_process)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def when_prepared(then: Callable[[], object]) -> None:
    """Have this done, in any thread, as soon as the calls of this task need nothing more of what was sent for them."""
    _prepared.set(then)


def prepared() -> None:
    """Say so: it was read, and is a prompt now."""
    if (then := _prepared.get()) is not None:
        then()


@contextmanager
def called_together(model: object) -> Iterator[None]:
    """Count the calls of a model that are made inside as called now, however long they wait until they begin."""
    token = _called.set((model, time.monotonic()))
    try:
        yield
    finally:
        _called.reset(token)


def clock_of(model: object, options: Options) -> Clock:
    """Return the clock of one call, which runs since it was called."""
    batch = _called.get()
    return Clock(options.timeout, began=batch[1] if batch is not None and batch[0] is model else None)


def start(messages: Sequence[BaseMessage], options: Options, clock: Clock) -> Call:
    """Have the engine work on an answer. It may take a while: a model is loaded, a prompt is encoded.

    Raises:
        InputError: the conversation or the options are not possible; other errors as ``engine().load`` and
            ``engine().submit`` have them. DeadlineError: the time was up.
    """
    run = partial(_here if clock.until is None else _elsewhere, clock)
    return wait_for(_steps(CallStart(messages, options, clock), run), clock)


async def astart(messages: Sequence[BaseMessage], options: Options, clock: Clock) -> Call:
    """Have the engine work on an answer, as ``start`` does, while the event loop goes on."""
    return await await_for(_steps(CallStart(messages, options, clock), partial(_elsewhere, clock)), clock)


def begin(function: Callable[[], T], clock: Clock) -> T:
    """Run a function that takes a while, for as long as there is time.

    Where it returns too late for anybody, what it returned is cancelled, if that is possible.
    """
    return wait_for(_here(clock, function) if clock.until is None else _elsewhere(clock, function), clock)


async def abegin(function: Callable[[], T], clock: Clock) -> T:
    """Run a function as ``begin`` does, while the event loop goes on."""
    return await await_for(_elsewhere(clock, function), clock)


async def beside(function: Callable[..., T], *args: Any) -> T:
    """Run a function in one of the threads, beside the event loop, however long it takes."""
    return await abegin(partial(function, *args), Clock())


def _steps(start: CallStart, run: Callable[[Callable[[], Any]], Steps[Any]]) -> Steps[Call]:
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
    yield from ()  # nobody has to wait for what is done here
    return _done(function, Stop(clock.until), clock)


def _elsewhere(clock: Clock, function: Callable[[], T]) -> Steps[T]:
    """Run a function in another thread."""
    stop = Stop(clock.until)
    context = copy_context()
    future: Future[T] = _beside.submit(lambda: context.run(_done_apart, function, stop, clock))
    try:
        yield future
        return future.result()
    except GeneratorExit:  # nobody waits any more
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
        raise ClosedError("This process is ending, or nobody waited for this any more. Ask again.") from stopped


def _done_apart(function: Callable[[], T], stop: Stop, clock: Clock) -> T:
    """Run a function that looks at a stop. Its error keeps nothing alive of what it worked on, which may be much."""
    try:
        return _done(function, stop, clock)
    except BaseException as error:
        clear_functions(error)
        raise


def _drop(future: Future[Any]) -> None:
    """Cancel what a function returned too late for anybody."""
    if not future.cancelled() and future.exception() is None:
        found = future.result()
        for end in ("cancel", "close"):  # of a call; of a coroutine that nobody waits for
            if hasattr(found, end):
                getattr(found, end)()
                return
