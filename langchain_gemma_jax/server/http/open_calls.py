"""The calls that are being answered: their number, and their end when the server ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from langchain_gemma_jax.errors import ClosedError, DeadlineError, GemmaJaxError


class OpenCalls:
    """Lets calls begin until ``drain``. Those that then take too long end with a ``DeadlineError``."""

    def __init__(self) -> None:
        self.count = 0
        self._draining = False
        self._seconds = 0.0
        self._failure: GemmaJaxError | None = None
        self._out_of_time: asyncio.Event | None = None

    @property
    def draining(self) -> bool:
        """True once the server was asked to end."""
        return self._draining

    @property
    def out_of_time(self) -> asyncio.Event:
        """An event that is set when open answers may go on no longer."""
        if self._out_of_time is None:
            self._out_of_time = asyncio.Event()
        return self._out_of_time

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count a call.

        Raises:
            ClosedError: the server was asked to end.
        """
        if self._draining:
            raise ClosedError("The server is shutting down, and takes no new calls. Ask again once it has restarted.")
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1

    def drain(self, seconds: float, failure: GemmaJaxError | None = None) -> None:
        """Take no new calls, and give the open ones ``seconds``; a ``failure`` ends them at once.

        Called in the event loop.
        """
        if failure is not None:
            self._draining, self._failure = True, failure
            self.out_of_time.set()
        elif not self._draining:
            self._draining, self._seconds = True, seconds
            asyncio.get_running_loop().call_later(seconds, self.out_of_time.set)

    def too_late(self) -> GemmaJaxError:
        """Return the error of a call that ``out_of_time`` ends."""
        return self._failure or DeadlineError(
            f"The server is ending, and the {self._seconds:g} seconds that it gives to open calls were up."
        )
