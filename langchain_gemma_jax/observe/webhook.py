"""``Webhook``: sends the trips of guards to Slack, PagerDuty or an address of yours, without blocking the engine."""

from __future__ import annotations

import hashlib
import json
import math
import socket
import threading
import time
import urllib.request
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from langchain_gemma_jax.engine.base.events import Tripped
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.errors import InputError

_log = OwnLog(__name__)

KINDS = ("slack", "pagerduty", "json")
PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
MOST_REMEMBERED = 1000  # alerts that are not sent again


@dataclass(frozen=True)
class Sent:
    """Counts of the trips that a webhook received, by what happened to them."""

    sent: int = 0
    repeated: int = 0  # the same guard and application were reported a short time ago
    limited: int = 0  # more than may be sent within a minute
    dropped: int = 0  # not sent after all tries, or too many were waiting
    waiting: int = 0


class Webhook:
    """Sends each trip of a guard to an address. Register it as a listener: it is called with each trip.

        alerts = Webhook("https://hooks.slack.com/services/...", kind="slack")
        engine().on_trip(alerts)

    An alert says which guard was tripped, for which application, and what to do. It never has text of a conversation,
    the name of a model or of a file. ``details=True`` adds the reason and the line of code.

    Args:
        url: the address. The default is PagerDuty's own, and only with kind="pagerduty".
        kind: the form: "slack", "pagerduty", or "json".
        routing_key: PagerDuty's key of the service.
        details: also send the reason and the line of code.
        per_minute: the most alerts within a minute.
        again_after: seconds until the same guard and application are reported again.
        tries: the most attempts to send an alert. After them it is dropped, and counted.
        timeout: seconds that one attempt may take.
        most_waiting: the most alerts that may wait to be sent. More are dropped, and counted.

    Raises:
        InputError: an argument is not possible.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        kind: str = "json",
        routing_key: str = "",
        details: bool = False,
        per_minute: int = 10,
        again_after: float = 300.0,
        tries: int = 3,
        timeout: float = 5.0,
        most_waiting: int = 100,
    ) -> None:
        if kind not in KINDS:
            raise InputError(f"Webhook: expected a kind of {', '.join(KINDS)}, found {kind!r}.")
        if url is None and kind == "pagerduty":
            url = PAGERDUTY
        if not isinstance(url, str) or urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise InputError("Webhook: expected an address that begins with https:// or http://.")  # it may be a secret
        if (kind == "pagerduty") != bool(routing_key):
            raise InputError('Webhook: expected a routing_key with kind="pagerduty", and with no other kind.')
        for name, value in (("per_minute", per_minute), ("tries", tries), ("most_waiting", most_waiting)):
            _check(name, value, whole=True)
        for name, seconds in (("again_after", again_after), ("timeout", timeout)):
            _check(name, seconds, whole=False)
        self._url, self._kind, self._key, self._details = url, kind, routing_key, details
        self._per_minute, self._again_after, self._tries = per_minute, again_after, tries
        self._timeout, self._most_waiting = timeout, most_waiting
        self._todo: deque[Tripped] = deque()
        self._last_sent: dict[tuple[str, str], float] = {}
        self._sent_at: deque[float] = deque(maxlen=per_minute)
        self._counts = dict.fromkeys(("sent", "repeated", "limited", "dropped"), 0)
        self._lock = threading.RLock()  # a signal handler may come a second time
        self._work = threading.Semaphore(0)
        self._idle = threading.Event()
        self._idle.set()
        self._thread: threading.Thread | None = None
        self._closed = False

    def __call__(self, record: Tripped) -> None:
        """Queue a trip to be sent, and return at once."""
        now, what = time.monotonic(), (record.guard, record.app)
        with self._lock:
            last = self._last_sent.get(what)
            if last is not None and now < last + self._again_after:
                self._counts["repeated"] += 1
            elif len(self._sent_at) == self._per_minute and now < self._sent_at[0] + 60:
                self._counts["limited"] += 1
            elif self._closed or len(self._todo) >= self._most_waiting:
                self._counts["dropped"] += 1
            else:
                self._last_sent.pop(what, None)
                self._last_sent[what] = now
                if len(self._last_sent) > MOST_REMEMBERED:
                    self._last_sent.pop(next(iter(self._last_sent)))
                self._sent_at.append(now)
                self._todo.append(record)
                self._idle.clear()
                self._begin()
                self._work.release()

    @property
    def counts(self) -> Sent:
        """Counts of all trips so far, by what happened to them."""
        with self._lock:
            return Sent(**self._counts, waiting=len(self._todo))

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the queue is empty. Return False if it is not within ``timeout`` seconds."""
        return self._idle.wait(timeout)

    def close(self) -> None:
        """Stop sending. Queued alerts are dropped."""
        with self._lock:
            self._closed = True
            self._counts["dropped"] += len(self._todo)
            self._todo.clear()
            self._idle.set()
        self._work.release()

    def __repr__(self) -> str:
        return f"Webhook(kind={self._kind!r})"  # the address may be a secret

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._live, name="gemma-jax-alerts", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # the system has no more threads, or the process ends
                self._counts["dropped"] += len(self._todo)
                self._todo.clear()
                self._idle.set()

    def _live(self) -> None:
        while not self._closed:
            self._work.acquire()
            with self._lock:
                record = self._todo[0] if self._todo else None
            if record is None:
                continue
            arrived = self._send(record)
            with self._lock:
                if self._todo and self._todo[0] is record:
                    self._todo.popleft()
                    self._counts["sent" if arrived else "dropped"] += 1
                if not self._todo:
                    self._idle.set()

    def _send(self, record: Tripped) -> bool:
        """Send an alert, with retries. Return True if it arrived."""
        body = json.dumps(self._payload(record)).encode()
        for attempt in range(self._tries):
            if attempt and not self._wait(min(30.0, 0.5 * 2**attempt)):
                return False
            request = urllib.request.Request(  # noqa: S310  the address was checked
                self._url, body, {"Content-Type": "application/json", "User-Agent": "langchain-gemma-jax"}
            )
            try:
                if 200 <= (status := _status_of(request, self._timeout)) < 300:
                    return True
                problem = f"status {status}"
            except HTTPError as error:
                problem = f"status {error.code}"
                if 300 <= error.code < 500 and error.code not in {408, 425, 429}:
                    break  # it will be refused again
            except (OSError, HTTPException, ValueError) as error:
                problem = type(error).__name__
        _log.warning("an alert could not be sent, and was dropped: %s", problem)
        return False

    def _wait(self, seconds: float) -> bool:
        """Wait before the next attempt. Return True if the webhook is still open."""
        until = time.monotonic() + seconds
        while not self._closed and time.monotonic() < until:
            time.sleep(0.05)
        return not self._closed

    def _payload(self, record: Tripped) -> dict[str, Any]:
        summary = f"{record.guard} guard was tripped" + (f" by {record.app}" if record.app else "")
        if self._details:
            summary = f"{summary}: {record.reason}" + (f" ({record.site})" if record.site else "")
        advice = ADVICE[record.guard]
        if self._kind == "slack":
            return {"text": _for_slack(f"{summary}. {advice}")}
        facts = {"guard": record.guard, "app": record.app, "policy": record.policy, "bytes": record.nbytes}
        if self._kind == "pagerduty":
            return {
                "routing_key": self._key,
                "event_action": "trigger",
                "dedup_key": hashlib.sha256(f"{record.guard}\0{record.app}".encode()).hexdigest()[:32],
                "payload": {
                    "summary": summary[:1024],
                    "source": "langchain-gemma-jax",
                    "severity": "error" if record.policy == "raise" else "warning",
                    "component": record.app or "langchain-gemma-jax",
                    "class": record.guard,
                    "custom_details": {**facts, "advice": advice},
                },
            }
        return {"summary": summary, "advice": advice, **facts}


ADVICE = {
    "recompile": "Something is compiled again and again: pad lengths to a few sizes, and warm up.",
    "transfer": "Host memory is copied at each call: keep it on the device.",
    "residency": "Models do not fit in memory together: allow more, or use fewer or smaller ones.",
    "cold_start": "A deadline is shorter than compiling takes: warm up before the clock runs.",
}


def _check(name: str, value: object, *, whole: bool) -> None:
    number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not number or not whole <= value < math.inf:  # type: ignore[operator]
        expected = "a whole number from 1" if whole else "seconds from 0"
        raise InputError(f"Webhook: {name}: expected {expected}, found {value!r}.")


def _for_slack(text: str) -> str:
    """Escape a text so that Slack sees no mention or link in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _status_of(request: urllib.request.Request, seconds: float) -> int:
    """Return the status of the answer to a request, which may take this many seconds in all.

    Raises:
        OSError, HTTPException, ValueError: there was no answer.
    """
    connections: list[Any] = []
    opener = urllib.request.build_opener(_NoRedirects, _Http(connections), _Https(connections))
    # A connection's own timeout starts again with every byte, so a server that sends one now and then would never
    # run into it.
    limit = threading.Timer(seconds, _shut, [connections])
    limit.daemon = True
    limit.start()
    try:
        with opener.open(request, timeout=seconds) as answer:
            return int(answer.status)
    finally:
        limit.cancel()


def _shut(connections: list[Any]) -> None:
    for each in connections:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


class _Noted:
    """A handler that adds each socket that it opens to a list, so that the timer can shut it."""

    def __init__(self, connections: list[Any]) -> None:
        super().__init__()
        self._connections = connections

    def do_open(self, http_class: Callable[..., Any], req: urllib.request.Request, **more: Any) -> Any:
        def made(host: str, **options: Any) -> Any:
            connection = http_class(host, **options)
            connect = connection.connect

            def noted() -> None:
                connect()
                self._connections.append(connection.sock)

            connection.connect = noted
            return connection

        return super().do_open(made, req, **more)  # type: ignore[misc]  # of the handler


class _Http(_Noted, urllib.request.HTTPHandler):
    """The handler for http, with a list of its sockets."""


class _Https(_Noted, urllib.request.HTTPSHandler):
    """The handler for https, with a list of its sockets."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A handler that follows no redirects: an alert goes to the given address alone."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
