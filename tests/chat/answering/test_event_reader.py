"""One call does its work once: the engine alone decodes its ids, and each event of its answer is read once."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import fields
from functools import reduce
from operator import add

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
def reads(monkeypatch) -> Counter[str]:
    """How many characters, or members of arguments, were read of each kind of event that parsers make."""
    found: Counter[str] = Counter()

    def counting(event: type) -> type:
        names = {field.name for field in fields(event)}

        class Counting(event):
            def __getattribute__(self, name):
                value = super().__getattribute__(name)
                if name in names:
                    found[event.__name__] += len(value)
                return value

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
    ways["stream"] = lambda: reduce(add, model.stream("Go"))
    model, engine = scripted(*[said] * len(ways), dialect=dialect, at_once=3, stop=["three"])
    for way, ask in ways.items():
        decoded.clear()
        reads.clear()
        message = ask()
        request = engine.requests[-1]
        words = [
            token
            for token in request.progress.context[len(request.asked.prompt) :]
            if tokenizer().control_name(token) is None
        ]
        assert decoded == Counter(words), way
        if way == "stream":  # which joins what came together, makes chunks of that, and remembers the whole
            assert reads["TextDelta"] == 3 * len(message.text), way
            continue
        thought = message.additional_kwargs.get("reasoning_content", "")
        assert (reads["TextDelta"], reads["ThoughtDelta"]) == (len(message.text), len(thought)), way
        assert reads["CallEnd"] == sum(len(call["args"]) for call in message.tool_calls), way
        assert reads["ArgumentsDelta"] == 0, way
