"""The engine's activity as the page reads it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.live_view import LiveView, OpenRequest
from langchain_gemma_jax.engine.base.events import Events, Finished, Timings, Tripped
from langchain_gemma_jax.engine.conversations.pool_view import PoolView
from langchain_gemma_jax.engine.residency.eviction_log import Evicted
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.browser.activity import LiveActivity
from tests.own_engine import own_engine
from tests.serving import asked, serving

OPEN = OpenRequest(3, "m", "", "", True, "writing", 9, 4, 9, 2, 0.1, 0.2, 0.3, 0.5)
OVER = Finished("m", "", "app", "stop", False, 9, 4, 5, 0, 0, 0, 1, Timings(0.1, 0.2, 0.3, 0.9), 2)
POOL = PoolView("global", 20, 3, 100, 8, 1, (1, 0), (0, 2), (0, 1))
EMPTY = LiveView((), (("m", POOL),), (), (Evicted("m", "weights", "unused for 60 s", 100, 0.1),), 2, 1, 30, 20, 10)


def engine(*requests: OpenRequest) -> SimpleNamespace:
    trips = SimpleNamespace(by_kind={"recompile": 2})
    view = replace(EMPTY, requests=requests)
    return SimpleNamespace(events=Events(), guards=SimpleNamespace(trips=trips), live=lambda: view)


def test_requests_are_shown_from_the_queue_to_their_last_token(monkeypatch):
    waiting = replace(OPEN, number=4, running=False, generated_tokens=0, first_token_s=None)
    running = engine(OPEN, waiting)
    monkeypatch.setattr(process, "engine", lambda: running)
    activity = LiveActivity(ServedModels(("sprout-s",), others=True))
    activity.now("")
    running.events.publish(OVER)
    running.events.publish(Tripped("recompile", "app", "why", "what to do", "warn", site="secret.py:3"))
    told = json.loads(json.dumps(activity.now("")))
    assert [(each["number"], each["outcome"], each["first_token_s"]) for each in told["requests"]] == [
        (2, "stop", 0.3), (3, None, 0.3), (4, None, None)
    ]  # fmt: skip
    assert (told["running"], told["waiting"], told["done"], told["failed"]) == (1, 1, 2, 1)
    assert told["pools"][0]["kept"] == [0, 2]
    assert told["evictions"][0]["reason"] == "unused for 60 s"
    assert told["trips"] == {"recompile": 2}
    assert [(each["reason"], each["advice"]) for each in told["latest_trips"]] == [("why", "what to do")]
    (served,) = told["served"]
    assert (served["name"], served["images"], served["tools"]) == ("sprout-s", False, True)
    assert "secret" not in json.dumps(told)


def test_a_key_sees_its_own_requests_one_by_one_and_the_number_of_all(monkeypatch):
    running = engine(replace(OPEN, scope="key:alice/x"), replace(OPEN, number=4, scope="key:alice2/", app="bob's"))
    monkeypatch.setattr(process, "engine", lambda: running)
    activity = LiveActivity(ServedModels(("sprout-s",)))
    activity.now("key:alice")
    for scope in ("key:bob/", "key:alice/"):
        running.events.publish(replace(OVER, scope=scope, app=scope))
    told = activity.now("key:alice")
    assert [(each["number"], each["app"]) for each in told["requests"]] == [(2, "key:alice/"), (3, "")]
    assert told["running"] == 2
    assert "bob" not in json.dumps(told)


def test_an_engine_that_has_done_nothing(tmp_path):
    with own_engine(), serving(None) as server:
        status, told, headers = asked(server.listening.shown, "/activity")
        assert (status, headers["cache-control"]) == (200, "no-store")
        assert (told["requests"], told["pools"], told["running"], told["generated_tokens"]) == ([], [], 0, 0)
        assert told["calls"].startswith("gemma-jax/")
