"""A server of the app: runs until a signal or a call ends it, lets open answers finish, and removes its files."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from langchain_gemma_jax.client.exchange import HOSTS
from langchain_gemma_jax.errors import GemmaJaxError, InstallationError
from langchain_gemma_jax.server.app import GemmaJaxApp
from langchain_gemma_jax.server.http.limits import ServerLimits
from langchain_gemma_jax.server.http.listening import Listening

AFTER_DRAIN = 2.0  # seconds for the last errors to reach their clients


class RunningServer:
    """A server that listens somewhere, in this thread (``run``) or in one of its own (``with``)."""

    def __init__(
        self, app: GemmaJaxApp, listening: Listening, limits: ServerLimits | None = None, hosts: int = 1
    ) -> None:
        """Set the server up. ``hosts``: the number of the engine's hosts, which responses name if it is above 1.

        Raises:
            InstallationError: uvicorn is not installed.
        """
        self.app, self.listening, self._limits = app, listening, limits or ServerLimits()
        self.failure: GemmaJaxError | None = None
        self._server = _draining_server(app, self._limits, hosts)
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT, and then until open answers are over."""
        try:
            with _signals_are_no_errors():
                asyncio.run(self._server.serve(sockets=[self.listening.socket]))
        finally:
            self.listening.close()

    def fail(self, error: GemmaJaxError, *, for_all: bool = False) -> None:
        """End because of an error. ``for_all``: it also ends all open calls, at once.

        Any thread may call this.
        """
        self.failure = error
        self._server.failure = error if for_all else None
        self._server.should_exit = True

    def end(self) -> None:
        """End as on SIGTERM. Any thread may call this."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.run, name="gemma-jax-server", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():
            self._thread.join(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        if self._thread is not None:
            self._thread.join(self._limits.drain_s + 2 * AFTER_DRAIN)


def _draining_server(app: GemmaJaxApp, limits: ServerLimits, hosts: int) -> Any:
    try:
        import uvicorn
    except ImportError as error:
        raise InstallationError("A server needs uvicorn: pip install 'langchain-gemma-jax[serve]'.") from error
    from langchain_gemma_jax.server.http.connections import bounded_by

    class DrainingServer(uvicorn.Server):
        """A server of uvicorn's that ends the app's open calls when it shuts down."""

        failure: GemmaJaxError | None = None  # the error of all open calls, if one ends them

        async def shutdown(self, sockets: Any = None) -> None:
            app.calls.drain(limits.drain_s, self.failure)
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=bounded_by(limits),
        ws="none",
        lifespan="on",
        log_config=None,  # logging belongs to the process: a configuration would remove its handlers
        log_level=logging.ERROR,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(limits.drain_s + AFTER_DRAIN),
        backlog=1024,
        headers=[(HOSTS, str(hosts))] if hosts > 1 else [],
    )
    return DrainingServer(config)


@contextmanager
def _signals_are_no_errors() -> Iterator[None]:
    """Ignore SIGTERM and SIGINT after the server has ended: uvicorn raises them once more then."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def granted(*_: object) -> None:
        return

    before: dict[signal.Signals, Callable[..., Any] | int | None] = {
        each: signal.signal(each, granted) for each in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
