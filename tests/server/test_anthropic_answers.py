"""Anthropic's messages: what clients send becomes messages and options, and answers have their form."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.server.apis.anthropic_answers import BlockEvents
from tests.serving import asked, events

PATH = "/v1/messages"
HELLO = {"model": "scripted", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}
RING = {"name": "ring", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
THOUGHT = "<|channel>thought\nHm<channel|>Hello<turn|>"
CALL = "Well<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
CUT = "<|tool_call>call:ring{n:3"


@pytest.mark.parametrize(
    ("answer", "more", "blocks", "reason"),
    [
        ("Hello<turn|>", {}, [("text", "Hello")], "end_turn"),
        ("Hello", {"stop_sequences": ["l"]}, [("text", "He")], "stop_sequence"),
        (THOUGHT, {"thinking": {"type": "adaptive"}}, [("thinking", "Hm"), ("text", "Hello")], "end_turn"),
        (CALL, {"tools": [RING]}, [("text", "Well"), ("tool_use", {"n": 3})], "tool_use"),
        (CUT, {"tools": [RING], "tool_choice": {"type": "any"}}, [("text", "")], "max_tokens"),
    ],
)
def test_an_answer_whole_and_streamed(at, says, answer, more, blocks, reason):
    says(answer, answer)
    status, found, _ = asked(at, PATH, HELLO | more, {"anthropic-version": "2023-06-01"})
    assert status == 200
    said = [(block["type"], block.get("text", block.get("thinking", block.get("input")))) for block in found["content"]]
    if answer == CUT:  # what there is of a call that broke off is words: nobody executes it
        assert [kind for kind, _ in said] == ["text"]
    else:
        assert [(kind, text.strip() if kind == "thinking" else text) for kind, text in said] == blocks
    assert found["stop_reason"] == reason
    usage = found["usage"]
    assert usage["cache_read_input_tokens"] > 0 < usage["input_tokens"]

    told = events(asked(at, PATH, HELLO | more | {"stream": True})[1])
    assert [name for name, _ in told] == [data["type"] for _, data in told]
    assert (told[0][0], told[-1][0]) == ("message_start", "message_stop")
    assert told[-2][1]["delta"]["stop_reason"] == reason
    assert told[-2][1]["usage"] == usage
    built: list[dict] = []
    for name, data in told:
        if name == "content_block_start":
            assert data["index"] == len(built)
            built.append({"type": data["content_block"]["type"], "text": ""})
        elif name == "content_block_delta":
            delta = data["delta"]
            built[data["index"]]["text"] += delta.get("text", delta.get("thinking", delta.get("partial_json")))
    parsed = [
        (each["type"], json.loads(each["text"]) if each["type"] == "tool_use" else each["text"]) for each in built
    ]
    assert parsed == said


def test_tokens_are_counted(at, says):
    says()
    assert asked(at, "/v1/messages/count_tokens", {"model": "scripted", "messages": HELLO["messages"]})[1][
        "input_tokens"
    ]


def test_an_event_that_begins_a_call_tells_nothing_yet():
    start = {"event": "content-block-start", "content": {"type": "tool_call_chunk", "id": "c", "name": "ring"}}
    assert list(BlockEvents().of(start)) == []
