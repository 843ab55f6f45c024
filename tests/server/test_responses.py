"""OpenAI's responses: items in, items out, whole or in events that add up to the same."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.server.apis.responses import OutputItems
from tests.serving import asked, events

PATH = "/v1/responses"
HELLO = {"model": "scripted", "input": "Hi", "instructions": "Be brief."}
RING = {"type": "function", "name": "ring", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
THOUGHT = "<|channel>thought\nHm<channel|>Hello<turn|>"
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"


@pytest.mark.parametrize(
    ("answer", "more", "kinds", "status"),
    [
        ("Hello<turn|>", {}, ["message"], "completed"),
        (THOUGHT, {"reasoning": {"effort": "high"}}, ["reasoning", "message"], "completed"),
        (CALL, {"tools": [RING], "tool_choice": "required"}, ["function_call"], "completed"),
        ("<|tool_call>call:ring{n:3", {"tools": [RING]}, ["message"], "incomplete"),
        ("Hello", {"max_output_tokens": 3}, ["message"], "incomplete"),
    ],
)
def test_an_answer_whole_and_streamed(at, says, answer, more, kinds, status):
    says(answer, answer)
    code, found, _ = asked(at, PATH, HELLO | more)
    assert (code, found["status"], found["object"]) == (200, status, "response")
    assert [item["type"] for item in found["output"]] == kinds
    if answer == CALL:
        assert json.loads(found["output"][0]["arguments"]) == {"n": 3}
    told = events(asked(at, PATH, HELLO | more | {"stream": True})[1])
    assert [data["sequence_number"] for _, data in told] == list(range(len(told)))
    assert [told[0][0], told[1][0], told[-1][0]] == ["response.created", "response.in_progress", f"response.{status}"]
    whole = told[-1][1]["response"]
    assert [_plain(item) for item in whole["output"]] == [_plain(item) for item in found["output"]]
    assert whole["usage"] == found["usage"]
    text = "".join(data["delta"] for name, data in told if name == "response.output_text.delta")
    assert text == "".join(item["content"][0]["text"] for item in found["output"] if item["type"] == "message")


def _plain(item: dict) -> dict:
    return {name: value for name, value in item.items() if name not in {"id", "call_id"}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"previous_response_id": "resp_1"}, "stores nothing"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "nothing is cut off"),
        ({"input": []}, "one item at least"),
        ({"input": [{"type": "computer_call"}]}, "found 'computer_call'"),
        ({"tools": [{"type": "file_search"}]}, "runs no tools itself"),
    ],
)
def test_what_is_not_possible_is_said(at, says, change, said):
    says("Hello<turn|>")
    status, found, _ = asked(at, PATH, HELLO | change)
    assert status == 400
    assert said in found["error"]["message"]


def test_nothing_is_told_of_what_has_not_begun():
    assert OutputItems().done == []
