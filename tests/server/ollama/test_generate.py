"""Ollama's ``/api/generate``: prompts are conversations of one message, and raw texts are gone on with."""

from __future__ import annotations

import json

from langchain_gemma_jax.server.ollama.generate import OllamaGenerate
from tests.dialects.vocabulary import tokenizer
from tests.serving import asked

PATH = "/api/generate"
HELLO = {"model": "sprout-s", "prompt": "Hi"}


def lines(text):
    return [json.loads(each) for each in text.splitlines()]


def read(engine, number=-1):
    return "".join(tokenizer().decode(engine.submitted[number]["prompt"]))


def test_a_prompt_is_a_conversation(at, says):
    engine = says("Hello<turn|>", "Hello<turn|>", "<|channel>thought\nHm<channel|>Hello<turn|>", '{"a":1}<turn|>')
    status, found, _ = asked(at, PATH, HELLO | {"system": "Be brief.", "stream": False})
    assert (status, found["response"], found["done"], found["done_reason"]) == (200, "Hello", True, "stop")
    assert "Be brief." in read(engine)
    assert "context" not in found
    *told, end = lines(asked(at, PATH, HELLO)[1])
    assert "".join(each["response"] for each in told) == "Hello"
    assert (end["response"], end["eval_count"]) == ("", 6)
    told = lines(asked(at, PATH, HELLO | {"think": True})[1])
    assert "".join(each.get("thinking", "") for each in told).strip() == "Hm"
    assert lines(asked(at, PATH, HELLO | {"format": "json"})[1])[-1]["done_reason"] == "stop"
    assert engine.submitted[-1]["sampling"].grammar is not None


def test_a_raw_text_is_gone_on_with_as_it_is(at, says):
    engine = says("Hello<turn|>", "Hello<turn|>", "Hello")
    options = {"num_predict": 9, "num_gpu": 1}
    _, found, _ = asked(at, PATH, HELLO | {"raw": True, "stream": False, "options": options})
    assert (found["response"], found["done_reason"], found["eval_count"]) == ("Hello", "stop", 6)
    assert engine.submitted[0]["prompt"] == (tokenizer().bos_id, *tokenizer().encode_text("Hi"))
    assert len(found["warnings"]) == 1
    assert found["total_duration"] >= found["load_duration"] >= 0
    for reason in ("stop", "length"):
        *told, end = lines(asked(at, PATH, HELLO | {"raw": True})[1])
        assert ("".join(each["response"] for each in told), end["done_reason"]) == ("Hello", reason)


def test_an_empty_prompt_loads_the_model(at, says):
    says()
    for body in ({"model": "sprout-s"}, {"model": "sprout-s", "prompt": ""}, {"model": "sprout-s", "raw": True}):
        (found,) = lines(asked(at, PATH, body)[1])
        assert (found["done"], found["done_reason"], found["response"]) == (True, "load", "")


def test_what_is_not_possible_is_said(at, says):
    says()
    for change, said in (
        ({"template": "{{ .Prompt }}"}, "template: this is not here"),
        ({"context": [1, 2]}, "/api/chat"),
        ({"width": 512}, "no model here draws pictures"),
        ({"suffix": "x"}, "cannot fill in between two texts"),
        ({"raw": True, "system": "S"}, "system: with raw"),
        ({"suffix": "x", "format": "json"}, "format: with suffix"),
        ({"raw": 1}, "raw: expected true or false"),
        ({"prompt": ["Hi"]}, "prompt: expected a string"),
        ({"raw": True, "prompt": "x" * 9000}, "too many"),
        ({"messages": []}, "messages: this server knows no such field"),
    ):
        got, found, _ = asked(at, PATH, HELLO | change)
        assert (got, said in found["error"]) == (400, True), (change, found)
    assert OllamaGenerate.streams_as == "application/x-ndjson"
