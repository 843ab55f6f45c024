"""The load beside another server: what is counted, and that what is lost is said."""

from __future__ import annotations

import json
from itertools import count

from benchmarks.serving.serving_rival import SCHEMA, body_of, load
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.errors import BusyError
from tests.chat.scripted import ScriptedEngine
from tests.serving import serving

FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


def test_each_request_is_counted_or_lost(monkeypatch):
    engine = ScriptedEngine(["Hello<turn|>"] * 12)
    monkeypatch.setattr(process, "engine", lambda: engine)
    with serving(None, models=("m",)) as server:
        port = int(server.listening.shown.rpartition(":")[2])
        seen = load(port, "m", FORM, 4, range(12))
        assert (len(seen.whole), len(seen.first), seen.lost) == (12, 6, [])
        assert seen.tokens >= 12
        assert all(0 < first < seen.seconds for first in seen.first)
        assert "lost 0" in seen.summary
        asked = count()

        def every_second() -> None:
            engine.answers.append("Hello<turn|>")
            if next(asked) % 2:
                raise BusyError("full")

        engine.before = every_second
        seen = load(port, "m", FORM, 1, range(8))
        assert (len(seen.whole), len(seen.lost)) == (4, 4)
        assert "429" in seen.lost[0]


def test_requests_are_of_five_kinds():
    kinds = [
        (body["stream"], len(body["messages"]), "response_format" in body)
        for body in (body_of(number, "m", FORM) for number in range(6))
    ]
    assert len(set(kinds)) == 5
    assert sum(streams for streams, _, _ in kinds) == 3
    assert sum(messages == 2 for _, messages, _ in kinds) == 2
    assert sum(formed for _, _, formed in kinds) == 1
    json.dumps(body_of(3, "m", FORM))
