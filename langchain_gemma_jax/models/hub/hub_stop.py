"""Stopping a download in the middle of an answer, however slow.

huggingface_hub's client returns data in pieces of megabytes, and reads in its own threads. So the connections of this
one download are closed from outside. Its requests have an id in a header to tell them from others.
"""

from __future__ import annotations

import socket
import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from langchain_gemma_jax.stopping import Stop

_HEADER = "X-Request-Id"
_hooking = threading.Lock()  # held while the client's hooks are changed


@contextmanager
def stoppable(stop: Stop | None, patience: float) -> Iterator[dict[str, str] | None]:
    """Yield headers for requests that end soon after ``stop``. Requests without these headers are not affected.

    Args:
        stop: None: the download cannot be stopped, and no headers are needed.
        patience: seconds that a request waits for the server at a time, if it sets no timeout itself.
    """
    if stop is None:
        yield None
        return
    stop.check()
    headers = {_HEADER: uuid.uuid4().hex}
    answers: weakref.WeakSet[Any] = weakref.WeakSet()  # in transfer

    def asks(request: Any) -> None:
        if request.headers.get(_HEADER) == headers[_HEADER]:
            stop.check()
            limits = request.extensions.get("timeout") or {}
            request.extensions["timeout"] = {
                name: patience if limits.get(name) is None else limits[name]
                for name in ("connect", "read", "write", "pool")
            }

    def answered(response: Any) -> None:
        if response.request.headers.get(_HEADER) == headers[_HEADER]:
            answers.add(response)
            response.iter_raw = _watched(response.iter_raw, stop)
            if stop.asked.done():
                _hang_up(response)

    def hang_up() -> None:
        for response in list(answers):
            _hang_up(response)

    stop.call(hang_up)
    with _hooked(asks, answered):
        yield headers


@contextmanager
def _hooked(asks: Any, answered: Any) -> Iterator[None]:
    """Add both functions to the hooks of huggingface_hub's client, and remove them at the end."""
    from huggingface_hub import get_session

    client: Any = get_session()
    with _hooking:
        hooks = client.event_hooks
        client.event_hooks = {
            "request": [*hooks["request"], asks],
            "response": [*hooks["response"], answered],
        }
    try:
        yield
    finally:
        with _hooking:
            client.event_hooks = {
                name: [hook for hook in hooks if hook not in (asks, answered)]
                for name, hooks in client.event_hooks.items()
            }


def _watched(pieces: Any, stop: Stop) -> Any:
    """Return ``pieces`` with a check of ``stop`` at each one, so that a stop is not reported as a lost connection."""

    def watched(*args: Any, **options: Any) -> Iterator[bytes]:
        try:
            for piece in pieces(*args, **options):
                stop.check()
                yield piece
        except Exception:
            stop.check()
            raise

    return watched


def _hang_up(response: Any) -> None:
    """Shut down an answer's connection, also while another thread reads from it; not if the client has it back."""
    if not response.is_closed and (stream := response.extensions.get("network_stream")) is not None:
        with suppress(OSError, AttributeError, TypeError):
            socket.socket.shutdown(stream.get_extra_info("socket"), socket.SHUT_RDWR)
