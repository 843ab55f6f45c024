"""A caller's handle on its request: a stream of pieces, a result, and the way to stop it."""

from __future__ import annotations

import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from collections.abc import Generator as PyGenerator

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.requests.clock import Clock, Standstills
from langchain_gemma_jax.engine.requests.request import Completion, Piece, Request, deadline_error
from langchain_gemma_jax.errors import DeadlineError


class Generation:
    """One generation, from submission to its end. Read it once, in one of four ways.

        for piece in generation: ...          # or: async for
        completion = generation.result()      # or: await generation

    Iterating delivers pieces as they come, and ``result()`` gives the whole afterwards. Ending the
    iteration early, ``cancel()``, and dropping the object each stop the work within one dispatch.
    The errors of ``EngineError`` are raised where the generation is read.
    """

    def __init__(
        self, request: Request, may_wait: Callable[[], None] | None = None, standstills: Standstills | None = None
    ) -> None:
        """``may_wait`` raises in a thread for which nothing would ever come: the engine's own. None: there is none.

        ``standstills`` are those of the engine's thread, for the error of a request that is out of time.
        """
        self._request, self._may_wait, self._standstills = request, may_wait, standstills
        self._end: Completion | Exception | None = None
        self._stop = weakref.finalize(self, request.cancelled.set)
        self._stop.atexit = False
        self._iterated = False
        self._clock: Clock | None = None

    def on(self, clock: Clock) -> None:
        """Count the generation as part of the call that a clock is for, which knows what came before."""
        clock.now("answering")
        self._clock = clock

    def cancel(self) -> None:
        """Stop it within one dispatch. Reading on raises ``CancelledRequestError``. May be called twice, and late."""
        self._request.cancelled.set()

    @property
    def done(self) -> bool:
        """True if the request's end was read."""
        return self._end is not None

    def __iter__(self) -> Iterator[Piece]:
        self._iterated = self._request.streamed = True
        try:
            while (piece := self._settle(self._next())) is not None:
                yield piece
        finally:
            self.cancel()

    async def __aiter__(self) -> AsyncIterator[Piece]:
        self._iterated = self._request.streamed = True
        try:
            while (piece := self._settle(await self._anext())) is not None:
                yield piece
        finally:
            self.cancel()

    def result(self) -> Completion:
        """Wait for its end."""
        self._request.streamed = self._iterated  # no thread is woken for each token then
        while self._settle(self._next()) is not None:
            pass
        return self._completion()

    async def aresult(self) -> Completion:
        """Wait for its end. Cancelling the task that waits here cancels the generation."""
        self._request.streamed = self._iterated
        try:
            while self._settle(await self._anext()) is not None:
                pass
        finally:
            self.cancel()
        return self._completion()

    def __await__(self) -> PyGenerator[object, None, Completion]:
        return self.aresult().__await__()

    def _completion(self) -> Completion:
        if not isinstance(self._end, Completion):
            raise TypeError("a generation that ended without an error has a completion")
        return self._end

    def _settle(self, item: Piece | Completion | Exception) -> Piece | None:
        """A piece, or None at the end. Raises what the generation ended with."""
        if isinstance(item, Piece):
            return item
        if self._end is None:
            self._end = item
        if isinstance(item, DeadlineError) and self._clock is not None:
            raise self._clock.error(str(item))
        if isinstance(item, Exception):
            raise again(item)
        return None

    def _next(self) -> Piece | Completion | Exception:
        if self._end is not None:
            return self._end
        self._check_thread()
        try:
            return self._request.mailbox.get(self._patience())
        except TimeoutError:
            return self._too_late()

    async def _anext(self) -> Piece | Completion | Exception:
        if self._end is not None:
            return self._end
        self._check_thread()
        try:
            return await self._request.mailbox.aget(self._patience())
        except TimeoutError:
            return self._too_late()

    def _patience(self) -> float | None:
        # The owner thread keeps deadlines too, but cannot while it compiles.
        deadline = self._request.asked.deadline
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    def _too_late(self) -> DeadlineError:
        self.cancel()
        return deadline_error(self._request, self._standstills)

    def _check_thread(self) -> None:
        ancestry.refuse_forked()
        if self._may_wait is not None and not self._request.mailbox.has_ended:
            self._may_wait()
