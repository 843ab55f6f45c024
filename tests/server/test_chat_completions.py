"""OpenAI's chat completions: what clients send becomes messages and options, and answers have their form."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax import InputError
from tests.serving import asked, events

PATH = "/v1/chat/completions"
HELLO = {"model": "scripted", "messages": [{"role": "user", "content": "Hi"}]}
PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
RING = {"type": "function", "function": {"name": "ring", "description": "Rings", "parameters": PARAMETERS}}
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
CUT = "<|tool_call>call:ring{n:3"


def test_an_answer_in_words(at, says):
    engine = says("Hello<turn|>")
    settings = {"temperature": 0.5, "top_p": 0.9, "stop": ["x", "y"], "max_completion_tokens": 7, "seed": 3}
    status, found, _ = asked(at, PATH, HELLO | settings | {"logit_bias": {"5": -3}, "user": "me", "logprobs": True})
    assert status == 200
    (choice,) = found["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert choice["finish_reason"] == "stop"
    assert [each["token"] for each in choice["logprobs"]["content"]][:5] == list("Hello")
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == found["usage"]["prompt_tokens"] // 2 > 0
    assert found["model"] == "scripted"
    sampling = engine.submitted[0]["sampling"]
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.max_tokens) == (0.5, 0.9, 3, 7)
    assert (sampling.stop, sampling.logit_bias) == (("x", "y"), {5: -3})


def test_a_stream_adds_up_to_the_same(at, says):
    says("Hello<turn|>", CALL, "<|channel>thought\nHm<channel|>Hello<turn|>")
    for body, content, calls, thought in (
        (HELLO, "Hello", [], ""),
        (HELLO | {"tools": [RING]}, "", [("ring", {"n": 3})], ""),
        (HELLO | {"reasoning_effort": "low"}, "Hello", [], "Hm"),
    ):
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        status, text, headers = asked(at, PATH, body | usage, {"x-session-id": "conversation-7"})
        assert (status, headers["x-session-id"]) == (200, "conversation-7")
        assert headers["content-type"].startswith("text/event-stream")
        *chunks, counted, end = [data for _, data in events(text)]
        assert (end, counted["choices"]) == ("[DONE]", [])
        assert counted["usage"]["completion_tokens"] > 0
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        assert deltas[0]["role"] == "assistant"
        assert "".join(delta.get("content", "") for delta in deltas) == content
        assert "".join(delta.get("reasoning_content", "") for delta in deltas).strip() == thought
        parts = [part for delta in deltas for part in delta.get("tool_calls", [])]
        written = "".join(part["function"]["arguments"] for part in parts)
        assert [(part["function"]["name"], json.loads(written)) for part in parts if "id" in part] == calls
        reason = "tool_calls" if calls else "stop"
        assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None] * (len(chunks) - 1) + [reason]


def test_a_call_and_its_result(at, says):
    engine = says(CALL, "Done<turn|>")
    body = HELLO | {"tools": [RING], "tool_choice": {"type": "function", "function": {"name": "ring"}}}
    message = asked(at, PATH, body)[1]["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert (message["content"], call["function"]) == (None, {"name": "ring", "arguments": '{"n": 3}'})
    result = {"role": "tool", "tool_call_id": call["id"], "content": [{"type": "text", "text": "ding"}]}
    body |= {"messages": [*HELLO["messages"], message, result], "tool_choice": "none"}
    assert asked(at, PATH, body)[1]["choices"][0]["message"]["content"] == "Done"
    assert engine.submitted[0]["sampling"].grammar is not None


def test_a_call_that_broke_off_is_none_that_can_be_executed(at, says):
    says(CUT, CUT)
    body = HELLO | {"tools": [RING]}
    (call,) = asked(at, PATH, body)[1]["choices"][0]["message"]["tool_calls"]
    parts = [data["choices"][0]["delta"] for _, data in events(asked(at, PATH, body | {"stream": True})[1])[:-1]]
    streamed = "".join(part["function"]["arguments"] for delta in parts for part in delta.get("tool_calls", []))
    for arguments in (call["function"]["arguments"], streamed):
        with pytest.raises(ValueError, match=r"Expecting|Extra|delimiter|Invalid"):
            json.loads(arguments)


def test_an_object_of_a_schema(at, says):
    engine = says('{"n":3}<turn|>')
    form = {"type": "json_schema", "json_schema": {"name": "ring", "schema": PARAMETERS, "strict": True}}
    found = asked(at, PATH, HELLO | {"response_format": form})[1]
    assert json.loads(found["choices"][0]["message"]["content"]) == {"n": 3}
    assert engine.submitted[0]["sampling"].grammar is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": 0}, "n: expected a whole number from 1 to 128"),
        ({"best_of": 2}, "best_of: this server knows no such field"),
        ({"model": 3}, "model: expected a string"),
        ({"messages": []}, "messages: expected one at least"),
        ({"messages": [{"role": "robot", "content": "x"}]}, r"messages\[0\].role: expected one of system"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "found none"),
        ({"tools": [{"type": "web_search"}]}, "runs no tools itself"),
        ({"tool_choice": "any"}, "there are no tools"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream": "yes"}, "stream: expected true or false"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"reasoning_effort": "huge"}, "reasoning_effort: expected one of none"),
    ],
)
def test_what_is_not_possible_is_said(at, says, change, said):
    says("Hello<turn|>")
    status, found, _ = asked(at, PATH, HELLO | change)
    assert status == 400
    with pytest.raises(InputError, match=said):
        raise InputError(found["error"]["message"])
    assert set(found["error"]) == {"message", "type", "param", "code"}


def test_several_answers_to_one_conversation(at, says):
    engine = says("Hello<turn|>", CALL, "Hello<turn|>", "Hello<turn|>")
    body = HELLO | {"n": 2, "seed": 7, "tools": [RING], "logprobs": True}
    _, found, _ = asked(at, PATH, body)
    told = [(each["index"], each["message"]["content"], each["finish_reason"]) for each in found["choices"]]
    assert told == [(0, "Hello", "stop"), (1, None, "tool_calls")]
    assert [each["sampling"].seed for each in engine.submitted] == [7, 8]
    one = found["usage"]["prompt_tokens"] // 2
    assert found["usage"]["prompt_tokens_details"]["cached_tokens"] == 2 * (one // 2)
    *chunks, counted, _ = [
        data
        for _, data in events(asked(at, PATH, body | {"stream": True, "stream_options": {"include_usage": True}})[1])
    ]
    choices = [chunk["choices"][0] for chunk in chunks]
    for number in (0, 1):
        deltas = [each["delta"] for each in choices if each["index"] == number]
        assert (deltas[0]["role"], "".join(each.get("content", "") for each in deltas)) == ("assistant", "Hello")
    assert counted["usage"]["completion_tokens"] == 12
