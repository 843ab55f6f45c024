"""How a call is begun by those who wait for it: in their thread, in an event loop, and for as long as they have time.

What may take long is done in threads of its own, a few at once, that nobody else's work has to wait behind: encoding
a long text, compiling a grammar, importing JAX. Waiting for a model takes up no thread at all.
"""

from __future__ import annotations

import asyncio
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
from langchain_gemma_jax.engine.requests.clock import Clock, Steps, await_for, wait_for

T = TypeVar("T")

AT_ONCE = 32  # calls that are being begun

_called: ContextVar[tuple[object, float] | None] = ContextVar("called", default=None)
"""The model whose batch the call belongs to, and when the batch was asked for."""


def _threads() -> Background:
    return Background(AT_ONCE, name="gemma-jax-call", daemon=False)


_beside = _threads()


def _after_fork_in_child() -> None:
    global _beside  # noqa: PLW0603  the threads did not come along
    _beside = _threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


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
    run = _here if clock.until is None else _elsewhere
    return wait_for(_steps(CallStart(messages, options, clock), run), clock)


async def astart(messages: Sequence[BaseMessage], options: Options, clock: Clock) -> Call:
    """Have the engine work on an answer, as ``start`` does, while the event loop goes on."""
    return await await_for(_steps(CallStart(messages, options, clock), _elsewhere), clock)


async def beside(function: Callable[..., T], *args: Any) -> T:
    """Run a function in one of the threads, beside the event loop."""
    return await asyncio.wrap_future(_submit(partial(function, *args)))


def _steps(start: CallStart, run: Callable[[Callable[[], Any]], Steps[Any]]) -> Steps[Call]:
    found = yield from run(start.begin)
    if isinstance(found, AwaitedModel):
        try:
            served = yield from found.steps()
        finally:
            found.cancel()
        found = yield from run(partial(start.submit, served))
    call: Call = found
    return call


def _here(function: Callable[[], T]) -> Steps[T]:
    yield from ()  # nobody has to wait for what is done here
    return function()


def _elsewhere(function: Callable[[], T]) -> Steps[T]:
    """Run a function in another thread. It has to return something that can be cancelled."""
    future = _submit(function)
    try:
        yield future
        return future.result()
    except GeneratorExit:  # nobody waits any more
        future.cancel()
        future.add_done_callback(_drop)
        raise


def _submit(function: Callable[[], T]) -> Future[T]:
    return _beside.submit(partial(copy_context().run, function))


def _drop(future: Future[Any]) -> None:
    """Cancel what a function returned too late for anybody."""
    if not future.cancelled() and future.exception() is None:
        future.result().cancel()
