"""Who may ask which models, and for how long."""

from __future__ import annotations

import json

from langchain_gemma_jax.server.http.api_keys import ApiKeys
from langchain_gemma_jax.server.http.limits import ServerLimits
from tests.serving import ALICE, BOB, CHAT, HELLO, NATIVE, PUBLIC, asked, serving

SIZES = {"light": "mine", "heavy": "other"}


def test_a_server_has_its_own_longest_time_of_a_call(says):
    says()
    with serving(None, limits=ServerLimits(call_s=0.05, drain_s=1)) as server:
        for headers in ({}, {"x-deadline-s": "60"}):
            status, found, _ = asked(server.listening.shown, CHAT, HELLO, headers)
            assert (status, found["error"]["code"]) == (504, "deadline_exceeded")


def test_models_that_are_not_served_are_refused_and_named(says):
    says("Hello<turn|>", "Hello<turn|>")
    with serving(None, models=("mine", "other"), others=False) as server:
        at = server.listening.shown
        for name in ("scripted", "/etc/passwd"):
            status, found, _ = asked(at, CHAT, HELLO | {"model": name})
            assert (status, found["error"]["code"]) == (404, "model_not_found")
            assert "It has: 'mine', 'other'" in found["error"]["message"]
        assert asked(at, CHAT, HELLO | {"model": "other"})[1]["model"] == "other"
        native = {"messages": [{"type": "human", "content": "Hi"}], "options": {"model": "served"}}
        assert '"model_name":"mine"' in asked(at, NATIVE, native)[1]
        for name, value in {"dtype": "float32", "keep_alive": 1.0, "guards": "raise", "token": "x"}.items():
            native["options"] = {"model": "served", name: value}
            assert f"{name}: the operator of this server decides" in asked(at, NATIVE, native)[1]["error"]["message"]
        native["options"] = {"model": "served", "trust_remote_code": True}
        assert "a server runs no code of a model" in asked(at, NATIVE, native)[1]["error"]["message"]
        native["options"] = {"model": "auto", "route": {"light": "mine", "heavy": "/etc/passwd"}}
        assert asked(at, NATIVE, native)[0] == 404
        native["options"] = {"model": "/etc/passwd", "route": {"light": "mine", "heavy": "other"}}
        assert asked(at, NATIVE, native)[0] == 404, "a route beside it makes no other model one that is served"


def test_settings_of_the_server_hold_for_whoever_says_nothing_else(says):
    engine = says(*["Hello<turn|>"] * 7)
    defaults = {"weights": "int8", "temperature": 0.5, "max_tokens": 9, "thinking": True, "route": SIZES}
    with serving(None, models=("mine", "other"), others=False, defaults=defaults) as server:
        at = server.listening.shown
        body = HELLO | {"model": "mine"}
        assert asked(at, CHAT, body)[0] == asked(at, CHAT, body | {"temperature": 0.25, "max_tokens": 3})[0] == 200
        assert [each["sampling"].temperature for each in engine.submitted] == [0.5, 0.25]
        assert [each["sampling"].max_tokens for each in engine.submitted] == [9, 3]
        assert engine.loaded == ("mine", {"weights": "int8"})
        native = {"messages": [{"type": "human", "content": "Hi"}], "options": {"model": "served"}}
        for options in ({}, {"weights": "int8", "top_k": 5}):  # what it is anyway may be said
            assert asked(at, NATIVE, native | {"options": {"model": "served"} | options})[0] == 200
        assert engine.submitted[-1]["sampling"].temperature == 0.5
        assert engine.submitted[-1]["sampling"].top_k == 5
        refused = asked(at, NATIVE, native | {"options": {"model": "served", "weights": "int4"}})
        assert "weights: the operator of this server decides" in refused[1]["error"]["message"]
        assert asked(at, CHAT, HELLO | {"model": "auto"})[0] == 200
        assert engine.loaded[0] in SIZES.values(), "and so is its route"
        assert asked(at, CHAT, HELLO | {"model": "/etc/passwd"})[0] == 404


def test_nothing_is_answered_without_a_key_and_each_has_a_scope_of_its_own(says):
    engine = says(*["Hello<turn|>"] * 4)
    with serving(None, keys=ApiKeys({ALICE: "alice", BOB: "bob"})) as server:
        at = server.listening.shown
        for path in (*PUBLIC, NATIVE, "/v1/models", "/metrics", "/nowhere"):
            for headers in ({}, {"x-api-key": "wrong"}, {"authorization": f"Basic {ALICE}"}, {"x-api-key": ALICE[:-1]}):
                body = PUBLIC.get(path) or ({} if path == NATIVE else None)
                status, found, _ = asked(at, path, body, headers)
                assert status == 401, (path, headers)
                assert ALICE not in json.dumps(found)
        assert asked(at, "/health") == (200, {"status": "ok"}, asked(at, "/health")[2])
        assert asked(at, "/ready")[1] == {"ready": True}
        assert not engine.submitted
        for headers in ({"authorization": f"Bearer {ALICE}"}, {"x-api-key": BOB}):
            assert asked(at, CHAT, HELLO, headers)[0] == 200
        native = {"messages": [{"type": "human", "content": "Hi"}], "options": {"model": "s", "scope": "team"}}
        assert asked(at, NATIVE, native, {"x-api-key": BOB})[0] == 200
        assert [each["scope"] for each in engine.submitted] == ["key:alice/", "key:bob/", "key:bob/team"]
