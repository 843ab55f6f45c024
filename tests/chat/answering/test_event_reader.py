"""One call does its work once: what it copies, digests, checks, converts, plans, decodes and reads is counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import fields
from functools import reduce
from operator import add
from types import SimpleNamespace

import pytest
from langchain_core.messages import HumanMessage

from langchain_gemma_jax import Route
from langchain_gemma_jax.chat.asking import answer_grammar, tool_choice
from langchain_gemma_jax.chat.calling.ready_model import engine_prompt
from langchain_gemma_jax.chat.history import history
from langchain_gemma_jax.dialects import Tool
from langchain_gemma_jax.dialects.conversation import output_events
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptPiece, RenderedPrompt
from langchain_gemma_jax.dialects.fenced import fence_parser, json_call_reader
from langchain_gemma_jax.dialects.native import native_call_reader, native_parser
from langchain_gemma_jax.engine.api.request_making import RequestMaker
from langchain_gemma_jax.engine.base.draft_sources import SOURCES
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts
from tests.chat.scripted import ScriptedEngine
from tests.counted import copied
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
            assert 2 * len(message.text) <= reads["TextDelta"] <= 3 * len(message.text), way
            continue
        thought = message.additional_kwargs.get("reasoning_content", "")
        assert (reads["TextDelta"], reads["ThoughtDelta"]) == (len(message.text), len(thought)), way
        assert reads["CallEnd"] == sum(len(call["args"]) for call in message.tool_calls), way
        assert reads["ArgumentsDelta"] == 0, way


SAID = [HumanMessage("Hi"), HumanMessage("You there?"), HumanMessage("Go")]


def ring(how: str) -> str:
    """Ring a bell."""
    return how


def counting(monkeypatch, place: object, name: str) -> list[object]:
    """Have the calls of a function noted, each by its last argument."""
    noted, plain = [], getattr(place, name)

    def function(*given, **named):
        noted.append(given[-1] if given else None)
        return plain(*given, **named)

    monkeypatch.setattr(place, name, function)
    return noted


def test_the_ids_of_a_prompt_are_copied_twice():
    ids, engine = [7] * 200_000, ScriptedEngine(max_context=1 << 20)
    encoder = SimpleNamespace(encode_text=lambda _: ids, control_id=lambda _: None)
    rendered = RenderedPrompt((PromptPiece("a"),))
    known = SimpleNamespace(
        served=engine.served, files=object(), drafts=ModelDrafts(SOURCES, 7),
        grammars=SimpleNamespace(begin=lambda *_: (None, ())),
    )  # fmt: skip
    maker, made = RequestMaker(), []

    def ask() -> None:
        prompt = engine_prompt(rendered.encode(encoder))
        made.append(maker.make(known, prompt, None, scope="", system=0, asked_by=Asking("", None), deadline=None))

    ask()  # which imports what it needs
    assert copied(ask) < 2.3 * 8 * len(ids), "collected, and for the context: each takes 8 bytes an id"
    assert made[0].progress.context == ids
    assert made[0].keys() is made[0].asked.prompt.keys, "looking for conversations copies nothing"


@pytest.mark.parametrize("settings", [{}, {"model": "auto", "route": Route(light="a", heavy="b")}])
@pytest.mark.parametrize("streamed", [False, True])
def test_each_message_is_digested_once(settings, streamed, scripted, monkeypatch):
    model, _ = scripted("Yes.<turn|>", **settings)
    noted = counting(monkeypatch, history, "_digest")
    assert list(model.stream(SAID)) if streamed else model.invoke(SAID)
    assert [each.role for each in noted] == ["user"] * len(SAID) + ["assistant"]


@pytest.mark.parametrize("given", [{}, {"temperature": 0.5, "stop": ["x"], "logit_bias": {3: 1.0}}])
def test_settings_are_checked_once(given, scripted, monkeypatch):
    model, engine = scripted("Yes.<turn|>", "Yes.<turn|>")
    engine.generation_defaults.update({"do_sample": True, "top_k": 5})
    model.invoke("Hi")  # the checkpoint's own are checked once for a model
    noted = counting(monkeypatch, Sampling, "__post_init__")
    model.invoke("Hi", **given)
    assert len(noted) == bool(given)
    sampling = engine.submitted[1]["sampling"]
    assert (sampling.top_k, sampling.temperature) == (5, given.get("temperature", 1.0))
    assert Sampling(**{field.name: getattr(sampling, field.name) for field in fields(Sampling)}) == sampling
    assert hash(sampling)


def test_bound_tools_are_converted_once(scripted, monkeypatch):
    model, engine = scripted("Yes.<turn|>", "Yes.<turn|>", "Yes.<turn|>")
    bound = model.bind_tools([ring])
    first = bound.invoke("Hi")
    noted = [
        counting(monkeypatch, *each)
        for each in ((tool_choice, "convert_to_openai_tool"), (Tool, "of"), (answer_grammar, "grammar_for"))
    ]
    assert bound.invoke("Hi").text == first.text
    assert noted == [[], [], []]
    assert engine.submitted[0]["sampling"].grammar is engine.submitted[1]["sampling"].grammar
    bound.kwargs["tools"].append({"name": "stop", "description": "", "parameters": {}})
    bound.invoke("Hi")
    assert len(noted[0]) == 2, "a list that was changed is converted again"
    assert engine.submitted[1]["prompt"] != engine.submitted[2]["prompt"]


@pytest.mark.long
def test_an_admission_takes_one_plan(chat_of, monkeypatch):
    model = chat_of("gemma4", scope="planned")
    said = [HumanMessage("HELLO"), model.invoke("HELLO"), HumanMessage("MORE")]
    noted = counting(monkeypatch, PrefixIndex, "plan")
    again = model.invoke(said)
    assert noted == ["planned"]
    assert again.usage_metadata["input_token_details"]["cache_read"] > 0
