"""How another thread stops a model's loading: a download above all, which can take for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress

from langchain_gemma_jax.errors import GemmaJaxError


class StoppedError(GemmaJaxError):
    """Loading was stopped, because nobody waited for it any more."""


class Stop:
    """A wish that something ends. Any thread may have it; whoever does the work looks."""

    def __init__(self) -> None:
        self.asked: Future[None] = Future()  # done when it is to end

    def ask(self) -> None:
        """Have it end. May be called twice."""
        with suppress(InvalidStateError):
            self.asked.set_result(None)

    def check(self) -> None:
        """Stop work that may not go on.

        Raises:
            StoppedError: it has to end.
        """
        if self.asked.done():
            raise StoppedError("Loading was stopped, because nobody waited for it any more. Load it again.")

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until it has to end.

        Raises:
            StoppedError: it has to end.
        """
        wait((self.asked,), seconds)
        self.check()

    def call(self, action: Callable[[], None]) -> None:
        """Have this done by whoever asks for the end, at once if it was asked for already."""
        self.asked.add_done_callback(lambda _: action())
