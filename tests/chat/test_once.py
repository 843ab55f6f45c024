"""One call does its work once: the engine alone decodes its ids, and each event of its answer is read once."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import fields

import pytest

from langchain_gemma_jax.dialects.conversation import output_events
from langchain_gemma_jax.dialects.fenced import fence_parser, json_call_reader
from langchain_gemma_jax.dialects.native import native_call_reader, native_parser
from tests.dialects.vocabulary import tokenizer

PARSERS = (native_parser, native_call_reader, fence_parser, json_call_reader)
KINDS = ("TextDelta", "ThoughtDelta", "CallBegin", "ArgumentsDelta", "CallEnd")
CALL = '<|tool_call>call:ring{how:<|"|>é<|"|>}<tool_call|>'
ANSWERS = {
    "words, a thought and two calls": (
        "gemma4",
        f"<|channel>thought\nHmm.\n<channel|>So: é. {CALL}{CALL}<|tool_response>",
    ),
    "a call that breaks off": ("gemma4", "One. <|tool_call>call:ring{how"),
    "a stop string": ("gemma4", "One, two, three, four<turn|>"),
    "a call in a block": (
        "gemma",
        'So.\n```tool_call\n{"name": "ring", "parameters": {"how": "é"}}\n```<end_of_turn>',
    ),
}


@pytest.fixture
def decoded(monkeypatch) -> Counter[int]:
    """How often the bytes of each token were asked for."""
    found, kind = Counter(), type(tokenizer())
    plain = kind.token_bytes

    def token_bytes(self, token_id):
        found[token_id] += 1
        return plain(self, token_id)

    monkeypatch.setattr(kind, "token_bytes", token_bytes)
    return found


@pytest.fixture
def reads(monkeypatch) -> list[Counter[str]]:
    """For each event that a parser made, how often each of its fields was read."""
    found: list[Counter[str]] = []

    def counting(event: type) -> type:
        names = {field.name for field in fields(event)}

        class Counting(event):
            def __init__(self, *values, **named):
                object.__setattr__(self, "reads", Counter())
                super().__init__(*values, **named)
                found.append(self.reads)

            def __getattribute__(self, name):
                if name in names:
                    self.reads[name] += 1
                return super().__getattribute__(name)

        return Counting

    for kind in KINDS:
        made = counting(getattr(output_events, kind))
        for parser in PARSERS:
            if hasattr(parser, kind):
                monkeypatch.setattr(parser, kind, made)
    return found


@pytest.mark.parametrize("answer", ANSWERS)
def test_ids_are_decoded_and_events_read_once(answer, scripted, decoded, reads):
    dialect, said = ANSWERS[answer]
    ways = {"invoke": lambda: model.invoke("Go"), "ainvoke": lambda: asyncio.run(model.ainvoke("Go"))}
    ways["stream"] = lambda: list(model.stream("Go"))
    model, engine = scripted(*[said] * len(ways), dialect=dialect, at_once=3, stop=["three"])
    for way, ask in ways.items():
        decoded.clear()
        reads.clear()
        assert ask()
        request = engine.requests[-1]
        words = [token for token in request.context[len(request.prompt) :] if tokenizer().control_name(token) is None]
        assert decoded == Counter(words), way
        most = 1 if way != "stream" else 2  # which makes chunks of them as they come, and remembers the whole
        assert max(count for each in reads for count in each.values()) == most, way
