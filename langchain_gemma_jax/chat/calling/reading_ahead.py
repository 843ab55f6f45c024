"""Reading ahead: a prompt's keys and values are made before they are needed, while the engine has nothing else to do.

Nothing is answered, and nothing is remembered. A later call with the same beginning finds it read.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context

from langchain_gemma_jax.chat.calling.call import CallStart
from langchain_gemma_jax.chat.calling.starting import astart
from langchain_gemma_jax.errors import BusyError, CancelledRequestError


async def aread_ahead(start_of: CallStart) -> bool:
    """Have the engine of this process read a call's prompt. False: others needed it, and it was given up.

    The errors are those of ``start``, and of the engine.
    """
    try:
        call = await astart(start_of)
        await call.generation
    except (BusyError, CancelledRequestError):
        return False
    return True


class Preparation:
    """A prompt that is being read ahead, in this process or at a server. It goes on even if this object is dropped."""

    def __init__(self, read: Callable[[], Awaitable[bool]]) -> None:
        """Begin at once, in a thread of its own: an event loop in it waits, and can be canceled."""
        self._end: Future[bool] = Future()
        self._cancelled = False
        self._stop: Callable[[], object] | None = None
        context = copy_context()
        run = threading.Thread(target=lambda: context.run(self._run, read), name="gemma-jax-ahead", daemon=True)
        run.start()

    @property
    def done(self) -> bool:
        """True once it has ended: all was read, it was cancelled, or it failed."""
        return self._end.done()

    def cancel(self) -> None:
        """Stop it within one dispatch. What was read until then stays in memory. May be called twice, and late."""
        self._cancelled = True
        if (stop := self._stop) is not None:
            with suppress(RuntimeError):  # it has ended meanwhile
                stop()

    def result(self, timeout: float | None = None) -> bool:
        """Wait for its end. Return True if all of the prompt was read; False if it was cancelled, or given up.

        Raises:
            TimeoutError: it has not ended in time. GemmaJaxError: the prompt cannot be read.
        """
        return self._end.result(timeout)

    def _run(self, read: Callable[[], Awaitable[bool]]) -> None:
        try:
            found = asyncio.run(self._until_stopped(read))
        except asyncio.CancelledError:
            found = False
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            self._end.set_exception(error)
            return
        self._end.set_result(found)

    async def _until_stopped(self, read: Callable[[], Awaitable[bool]]) -> bool:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is None:
            raise RuntimeError("expected to run in a task")
        self._stop = lambda: loop.call_soon_threadsafe(task.cancel)
        return False if self._cancelled else await read()
