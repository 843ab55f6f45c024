"""Stops a download in the midst of an answer, however slowly that drips.

huggingface_hub's client hands out what it was sent in pieces of megabytes, and reads in threads of its own. So its
connections are closed under it, those of this one download: its requests bear an id in a header that servers log.
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
_hooking = threading.Lock()  # for one change of the client's hooks at a time


@contextmanager
def stoppable(stop: Stop | None, patience: float) -> Iterator[dict[str, str] | None]:
    """Requests that bear the headers that this gives end soon after ``stop`` was asked for; any others go on.

    Args:
        stop: None: nobody can ask, and nothing is done.
        patience: the seconds that a request waits for the server at a time, if it says nothing of that itself.
    """
    if stop is None:
        yield None
        return
    stop.check()
    headers = {_HEADER: uuid.uuid4().hex}
    answers: weakref.WeakSet[Any] = weakref.WeakSet()  # that are on their way

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
    """Have huggingface_hub's client call both functions."""
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
    """The pieces of an answer as they come. Why they end is that it was to end, and not that the server hung up."""

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
    """Close a connection for good, also while another thread reads from it. Not one that others have by now."""
    if not response.is_closed and (stream := response.extensions.get("network_stream")) is not None:
        with suppress(OSError, AttributeError, TypeError):
            socket.socket.shutdown(stream.get_extra_info("socket"), socket.SHUT_RDWR)
