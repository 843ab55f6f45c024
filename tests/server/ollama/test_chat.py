"""Ollama's ``/api/chat``: what clients send becomes messages and options, and answers have its form."""

from __future__ import annotations

import json

from langchain_gemma_jax.server.ollama.chat import OllamaChat
from langchain_gemma_jax.server.ollama.forms import LINES
from tests.serving import asked

PATH = "/api/chat"
HELLO = {"model": "sprout-s", "messages": [{"role": "user", "content": "Hi"}]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
RING = {"type": "function", "function": {"name": "ring", "description": "Rings", "parameters": SCHEMA}}
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
TWO = "<|tool_call>call:ring{n:3}<tool_call|><|tool_call>call:ring{n:4}<tool_call|><|tool_response>"
THOUGHT = "<|channel>thought\nHm<channel|>Hello<turn|>"
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def lines(text):
    return [json.loads(each) for each in text.splitlines()]


def test_an_answer_in_words(at, says):
    engine = says("Hello<turn|>")
    options = {"temperature": 0.5, "num_predict": 7, "repeat_penalty": 1.25, "num_thread": 8, "seed": 3, "stop": "x"}
    more = {
        "stream": False,
        "options": options,
        "logprobs": True,
        "top_logprobs": 1,
        "keep_alive": "5m",
        "think": False,
    }
    status, found, _ = asked(at, PATH, HELLO | more | {"tools": [], "format": "", "shift": False, "think": False})
    assert (status, found["model"], found["done"], found["done_reason"]) == (200, "sprout-s", True, "stop")
    assert found["message"] == {"role": "assistant", "content": "Hello"}
    assert [each["token"] for each in found["logprobs"]][:5] == list("Hello")
    assert found["prompt_cached_count"] == found["prompt_eval_count"] // 2 > 0
    assert found["eval_count"] == 6
    assert all(isinstance(found[name], int) and found[name] >= 0 for name in DURATIONS)
    assert found["warnings"] == ["options.num_thread has no effect: the engine finds that out itself."]
    assert engine.kept == [300.0]
    sampling = engine.submitted[0]["sampling"]
    assert (sampling.temperature, sampling.max_tokens, sampling.repetition_penalty) == (0.5, 7, 1.25)
    assert (sampling.seed, sampling.stop) == (3, ("x",))


def test_a_stream_adds_up_to_the_same(at, says):
    says("Hello<turn|>", CALL, TWO, THOUGHT, "Hello")
    both = [("ring", {"n": 3}), ("ring", {"n": 4})]
    for more, content, thinking, calls, reason in (
        ({}, "Hello", "", [], "stop"),
        ({"tools": [RING]}, "", "", both[:1], "stop"),
        ({"tools": [RING]}, "", "", both, "stop"),
        ({"think": "high"}, "Hello", "Hm", [], "stop"),
        ({"logprobs": True}, "Hello", "", [], "length"),
    ):
        status, text, headers = asked(at, PATH, HELLO | more, {"x-session-id": "conversation-7"})
        assert (status, headers["content-type"], headers["x-session-id"]) == (200, LINES, "conversation-7")
        *told, end = lines(text)
        assert [each["done"] for each in told] == [False] * len(told)
        assert (end["done"], end["done_reason"], end["message"]["content"]) == (True, reason, "")
        messages = [each["message"] for each in told]
        assert "".join(each["content"] for each in messages) == content
        assert "".join(each.get("thinking", "") for each in messages).strip() == thinking
        made = [call["function"] for each in messages for call in each.get("tool_calls", [])]
        assert [(each["name"], each["arguments"]) for each in made] == calls
        assert [each["index"] for each in made] == list(range(len(calls)))
        spelled = "".join(one["token"] for each in [*told, end] for one in each.get("logprobs", []))
        assert spelled == (content if "logprobs" in more else "")
        assert all(isinstance(end[name], int) for name in DURATIONS)


def test_an_answer_is_held_to_its_format(at, says):
    engine = says('{"n":3}<turn|>', '{"a":1}<turn|>', "Hello<turn|>")
    _, found, _ = asked(at, PATH, HELLO | {"format": SCHEMA, "stream": False})
    assert json.loads(found["message"]["content"]) == {"n": 3}
    asked(at, PATH, HELLO | {"format": "json"})
    asked(at, PATH, HELLO | {"format": None})
    object_of_n, any_object, free = (each["sampling"].grammar for each in engine.submitted)
    assert len({object_of_n, any_object, free}) == 3


def test_a_call_that_broke_off_is_never_one(at, says):
    says("<|tool_call>call:ring{n:3", "<|tool_call>call:ring{n:3")
    whole = asked(at, PATH, HELLO | {"tools": [RING], "stream": False})[1]
    told = lines(asked(at, PATH, HELLO | {"tools": [RING]})[1])
    assert "tool_calls" not in whole["message"]
    assert not any("tool_calls" in each["message"] for each in told)
    assert whole["message"]["content"] == "".join(each["message"]["content"] for each in told) == "call:ring{n:3"
    assert whole["done_reason"] == told[-1]["done_reason"] == "length"


def test_a_chat_without_messages_loads_its_model_or_lets_it_go(at, says):
    says()
    status, text, _ = asked(at, PATH, {"model": "sprout-s", "messages": []})
    (found,) = lines(text)
    assert (status, found["done"], found["done_reason"], found["message"]["content"]) == (200, True, "load", "")
    _, found, _ = asked(at, PATH, {"model": "sprout-s", "stream": False, "keep_alive": 0})
    assert found["done_reason"] == "unload"  # as the server of any model does; else the next test


def test_what_is_not_possible_is_said_in_ollamas_form(at, says):
    says()
    for change, status, said in (
        ({"model": ""}, 400, "model: expected a model's name"),
        ({"messages": "Hi"}, 400, "messages: expected a list"),
        ({"messages": [{"role": "user", "content": "x" * 9000}]}, 400, "too many"),
        ({"messages": [{"role": "user", "content": "Look", "images": ["aGVsbG8="]}]}, 400, "image"),
        ({"options": {"mirostat": 2}}, 400, "options.mirostat: expected 0"),
        ({"options": {"temperature": 1000}}, 400, "options.temperature: temperature: expected"),
        ({"format": "xml"}, 400, "format: expected 'json' or a JSON Schema"),
        ({"format": {"type": "array", "uniqueItems": True}}, 400, "uniqueItems"),
        ({"think": "deeply"}, 400, "think: expected true, false"),
        ({"stream": "yes"}, 400, "stream: expected true or false"),
        ({"keep_alive": "soon"}, 400, "keep_alive: expected seconds, or a duration"),
        ({"tools": [{"type": "retrieval"}]}, 400, "this server runs no tools itself"),
        ({"top_logprobs": 50}, 400, "top_logprobs"),
        ({"template": "{{ .Prompt }}"}, 400, "template: this server knows no such field"),
    ):
        got, found, _ = asked(at, PATH, HELLO | change)
        assert (got, said in found["error"], isinstance(found["code"], str)) == (status, True, True), (change, found)


def test_shift_and_truncate_are_named_as_without_an_effect(at, says):
    says("Hello<turn|>")
    told = lines(asked(at, PATH, HELLO | {"shift": True, "truncate": True, "think": True})[1])
    assert [each.split(" ")[0] for each in told[-1]["warnings"]] == ["think", "shift"]


def test_its_content_type_is_that_of_lines():
    assert OllamaChat.streams_as == "application/x-ndjson"
