"""OpenAI's ``/v1/completions``: texts that a model goes on with."""

from __future__ import annotations

from langchain_gemma_jax.server.apis.completions import Completions
from tests.dialects.vocabulary import tokenizer
from tests.serving import asked, events

PATH = "/v1/completions"
HELLO = {"model": "scripted", "prompt": "Hi"}


def test_a_text_is_gone_on_with_as_it_is(at, says):
    engine = says("Hello<turn|>", "Hello")
    settings = {"temperature": 0.5, "stop": ["x"], "seed": 3, "user": "me", "logit_bias": {"5": -3}}
    status, found, _ = asked(at, PATH, HELLO | settings)
    (choice,) = found["choices"]
    assert (status, found["object"], found["model"]) == (200, "text_completion", "scripted")
    assert choice == {"index": 0, "text": "Hello", "logprobs": None, "finish_reason": "stop"}
    assert found["usage"]["total_tokens"] == found["usage"]["prompt_tokens"] + 6
    (first,) = engine.submitted
    assert first["prompt"] == (tokenizer().bos_id, *tokenizer().encode_text("Hi"))
    sampling = first["sampling"]
    assert (sampling.temperature, sampling.stop, sampling.seed, sampling.max_tokens) == (0.5, ("x",), 3, 16)
    assert asked(at, PATH, HELLO | {"max_tokens": 30})[1]["choices"][0]["finish_reason"] == "length"
    assert engine.submitted[1]["sampling"].max_tokens == 30


def test_several_texts_and_several_answers_to_each(at, says):
    engine = says(*["Hello<turn|>"] * 8)
    several = {"prompt": ["Hi", "Ho"], "n": 2, "seed": 7, "echo": True}
    _, found, _ = asked(at, PATH, HELLO | several)
    told = [(each["index"], each["text"]) for each in found["choices"]]
    assert told == [(0, "HiHello"), (1, "HiHello"), (2, "HoHello"), (3, "HoHello")]
    assert sorted(each["sampling"].seed for each in engine.submitted) == [7, 7, 8, 8]
    assert found["usage"]["completion_tokens"] == 24
    streamed = several | {"stream": True, "stream_options": {"include_usage": True}}
    *chunks, counted, end = [data for _, data in events(asked(at, PATH, HELLO | streamed)[1])]
    assert (end, counted["usage"]) == ("[DONE]", found["usage"])
    choices = [chunk["choices"][0] for chunk in chunks]
    texts = ["".join(each["text"] for each in choices if each["index"] == number) for number in range(4)]
    assert texts == [text for _, text in told]
    assert sorted(each["index"] for each in choices if each["finish_reason"] == "stop") == [0, 1, 2, 3]


def test_what_is_not_possible_is_said(at, says):
    says()
    for change, said in (
        ({"prompt": None}, "prompt: expected a list"),
        ({"prompt": []}, "prompt: expected a text, or texts; found none"),
        ({"prompt": [1, 2]}, "another model's vocabulary"),
        ({"prompt": [[1, 2]]}, "another model's vocabulary"),
        ({"prompt": ["Hi"] * 64, "n": 3}, "at most 128 answers, found 192"),
        ({"n": 0}, "n: expected a whole number"),
        ({"n": 2, "best_of": 3}, "best_of: expected 2"),
        ({"logprobs": 1}, "logprobs: only /v1/chat/completions returns them"),
        ({"suffix": "x"}, "cannot fill in between two texts"),
        ({"echo": 1}, "echo: expected true or false"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"messages": []}, "messages: this server knows no such field"),
        ({"prompt": "x" * 9000}, "too many"),
    ):
        got, found, _ = asked(at, PATH, HELLO | change)
        assert (got, said in found["error"]["message"]) == (400, True), (change, found)
    assert Completions.streams_as.startswith("text/event-stream")
