"""Alerts arrive in the form that was asked for, not too often; what cannot be sent is counted, and holds up nobody."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from langchain_gemma_jax.engine.base.events import Tripped
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe import webhook as module
from langchain_gemma_jax.observe.webhook import ADVICE, Webhook
from tests.engine.faults_support import greedy
from tests.waiting import LONG


def trip(guard: str = "transfer", app: str = "billing", policy: str = "warn") -> Tripped:
    return Tripped(guard, app, "the reason", "the advice", policy, nbytes=16, site="agent.py:3 in run")


class Receiver:
    """A server that answers as it is told, and keeps what it got."""

    def __init__(self) -> None:
        self.got: list[dict[str, object]] = []
        self.answers: list[int] = []  # the next statuses; then 200
        self.hang = threading.Event()
        self.hang.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.hang.wait(300)
                status = outer.answers.pop(0) if outer.answers else 200
                if status == 200:
                    outer.got.append(json.loads(body))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *_):
                """Nothing is logged."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/services/a-secret"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.hang.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Nobody waits long between two tries."""
    monkeypatch.setattr(module.Webhook, "_wait", lambda self, _: not self._closed)


def test_each_form_is_what_its_receiver_expects(receiver):
    for options in ({"kind": "slack"}, {"kind": "pagerduty", "routing_key": "key"}, {"kind": "json"}):
        sender = Webhook(receiver.url, **options)
        sender(trip(app="<!channel>", policy="raise"))
        assert sender.flush(LONG)
        assert sender.counts.sent == 1
    slack, pagerduty, plain = receiver.got
    assert slack == {"text": f"transfer guard was tripped by &lt;!channel&gt;. {ADVICE['transfer']}"}
    assert (pagerduty["routing_key"], pagerduty["event_action"]) == ("key", "trigger")
    assert pagerduty["payload"]["severity"] == "error"
    assert pagerduty["payload"]["class"] == "transfer"
    assert len(pagerduty["dedup_key"]) == 32
    assert (plain["guard"], plain["app"], plain["bytes"]) == ("transfer", "<!channel>", 16)
    assert "the reason" not in json.dumps(receiver.got)
    assert "agent.py" not in json.dumps(receiver.got)


def test_details_are_told_where_that_is_asked_for(receiver):
    sender = Webhook(receiver.url, details=True)
    sender(trip())
    assert sender.flush(LONG)
    assert "the reason (agent.py:3 in run)" in receiver.got[0]["summary"]


def test_the_same_is_told_once_in_a_while_and_not_too_many_at_all(receiver, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    sender = Webhook(receiver.url, per_minute=3, again_after=40)
    for _ in range(50):
        sender(trip())
    sender(trip(app="search"))
    assert sender.flush(LONG)
    assert [each["app"] for each in receiver.got] == ["billing", "search"]
    now += 41
    sender(trip())  # which is told again, as the third one within a minute
    for number in range(10):
        sender(trip(app=f"app {number}"))
    assert sender.flush(LONG)
    assert len(receiver.got) == 3
    counts = sender.counts
    assert (counts.sent, counts.repeated, counts.limited, counts.dropped) == (3, 49, 10, 0)


def test_a_receiver_that_fails_is_asked_again_and_then_given_up(receiver, caplog):
    sender = Webhook(receiver.url, tries=3, again_after=0)
    receiver.answers = [500, 503, 200]
    sender(trip())
    assert sender.flush(LONG)
    receiver.answers = [500, 500, 500]
    sender(trip())
    assert sender.flush(LONG)
    receiver.answers = [404]
    sender(trip())  # which another try would not change
    assert sender.flush(LONG)
    receiver.answers = [302]
    sender(trip())  # nobody is followed elsewhere
    assert sender.flush(LONG)
    assert (sender.counts.sent, sender.counts.dropped, receiver.answers) == (1, 3, [])
    assert "status 500" in caplog.text
    assert "a-secret" not in caplog.text + repr(sender)


@pytest.mark.long
def test_a_receiver_that_hangs_holds_up_no_request_and_what_waits_is_limited(receiver, running_of, tiny_model):
    receiver.hang.clear()
    sender = Webhook(receiver.url, per_minute=100, again_after=0, most_waiting=5, tries=1, timeout=0.3)
    engine = running_of(guards="callback", on_trip=lambda _: None)
    stop = engine.on_trip(sender)
    served = engine.serve(tiny_model)
    for _ in range(20):
        engine.guards.trip("transfer", "for this test")
    assert not receiver.hang.is_set(), "nobody has waited for an answer"
    assert engine.submit(served, [60, 61], greedy(2)).result().generated_tokens == 2
    stop()
    assert sender.flush(LONG)
    counts = sender.counts
    assert counts.dropped == 20
    assert counts.sent == counts.waiting == 0


def test_a_receiver_that_answers_a_byte_at_a_time_is_given_up():
    """Each byte is in time, and the answer would take a year."""
    over = threading.Event()

    def drip(listening: socket.socket) -> None:
        one, _ = listening.accept()
        with one, suppress(OSError):
            one.recv(65536)
            one.sendall(b"HTTP/1.1 ")
            while not over.wait(0.05):
                one.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        dripping = threading.Thread(target=drip, args=(listening,))
        dripping.start()
        sender = Webhook(f"http://127.0.0.1:{listening.getsockname()[1]}/", tries=1, timeout=0.4)
        sender(trip())
        assert sender.flush(LONG)
        over.set()
        dripping.join()
    assert (sender.counts.sent, sender.counts.dropped) == (0, 1)


def test_who_is_closed_sends_nothing_more(receiver):
    receiver.hang.clear()
    sender = Webhook(receiver.url, again_after=0, timeout=1)
    for _ in range(3):
        sender(trip())
    sender.close()
    sender(trip())
    assert sender.flush(LONG)
    assert sender.counts.dropped == 4


def test_a_receiver_that_is_not_there_is_an_alert_that_is_dropped():
    sender = Webhook("http://127.0.0.1:1/x", tries=2)
    sender(trip())
    assert sender.flush(LONG)
    assert sender.counts.dropped == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ftp://x",), "expected an address"),
        ((None,), "expected an address"),
        (("https://",), "expected an address"),
        (("https://a", "teams"), "expected a kind of slack, pagerduty, json"),
        (("https://a", "pagerduty"), "expected a routing_key"),
        (("https://a", "slack", {"per_minute": 0}), "per_minute: expected a whole number from 1"),
        (("https://a", "slack", {"timeout": float("nan")}), "timeout: expected seconds"),
        (("https://a", "slack", {"tries": True}), "tries: expected a whole number from 1"),
    ],
)
def test_what_is_not_possible_is_refused(arguments, said):
    url, kind, options = (*arguments, "json", {})[:3] if len(arguments) == 1 else (*arguments, {})[:3]
    with pytest.raises(InputError, match=said):
        Webhook(url, kind=kind, **options)
