"""Tools, in all the forms that LangChain's users have, and whether they may be called."""

from __future__ import annotations

from typing import TypedDict

import pytest
from jsonschema import Draft202012Validator
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_gemma_jax import InputError, engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from tests.chat.tiny import ends_of_turns, toward_ends
from tests.dialects.vocabulary import tokenizer

SCHEMAS = {
    name: {"properties": {key: {"type": kind}}, "required": [key]}
    for name, key, kind in (("ring", "times", "integer"), ("sing", "song", "string"))
}


def ring(times: int) -> str:
    """Rings the bell."""
    return "ding" * times


class Ring(BaseModel):
    """Rings the bell."""

    times: int


class RingDict(TypedDict):
    """Rings the bell."""

    times: int


OBJECT = {"type": "object", "properties": {"times": {"type": "integer"}}, "required": ["times"]}
FORMS = [
    ring,
    tool(ring),
    Ring,
    RingDict,
    {"name": "ring", "description": "Rings the bell.", "parameters": OBJECT},
    {"type": "function", "function": {"name": "ring", "description": "Rings the bell.", "parameters": OBJECT}},
    {"name": "ring", "description": "Rings the bell.", "input_schema": OBJECT, "cache_control": {"type": "ephemeral"}},
    {"toolSpec": {"name": "ring", "description": "Rings the bell.", "inputSchema": {"json": OBJECT}}},
    {"title": "ring", "description": "Rings the bell.", **OBJECT},
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_tool_is_declared(form, scripted):
    model, engine = scripted("Hello", "Hello")
    model.bind_tools([form]).invoke("Hi")
    model.invoke("Hi", tools=[form])
    for request in engine.submitted:
        prompt = tokenizer().decode(request["prompt"], keep_control=True)
        assert "Rings the bell." in prompt
        assert '<|"|>INTEGER<|"|>' in prompt
        assert "<|tool>declaration:ring" in prompt.lower()


@pytest.mark.parametrize(
    ("tools", "match"),
    [
        ([3], r"tools\[0\]: "),
        ([ring, {"type": "object"}], r"tools\[1\]: "),
        ([{"type": "web_search"}], "another company's server runs"),
        ([{"name": "", "parameters": {}}], "name"),
        ([{"name": "x", "parameters": 3}], "parameters"),
        ("ring", r"tools: expected a list of functions.*found 'ring'. One alone is put into a list.*not by its name"),
        (ring, "tools: expected a list of functions.*found <function ring"),
        (["ring"], r"^tools\[0\]: expected a function, .*; found 'ring'. Give the function itself, and not its name"),
        ([ring, {"name": "ring", "parameters": {}}], "called 'ring' too"),
    ],
)
def test_what_is_no_tool_is_refused(tools, match, scripted):
    model, _ = scripted("Hello")
    with pytest.raises(InputError, match=match):
        model.invoke("Hi", tools=tools)


@pytest.mark.parametrize("tools", [[3], [{"type": "web_search"}], [{"name": "x", "parameters": 3}], "ring", ring])
def test_it_is_refused_when_it_is_bound(tools, scripted):
    model, _ = scripted()
    with pytest.raises(InputError):
        model.bind_tools(tools)


def asked(scripted, choice, dialect="gemma4", **given) -> tuple[str, Sampling]:
    model, engine = scripted("Hello", dialect=dialect)
    model.bind_tools([ring], tool_choice=choice, **given).invoke("Hi")
    (request,) = engine.submitted
    return tokenizer().decode(request["prompt"], keep_control=True), request["sampling"]


@pytest.mark.parametrize("choice", [None, "auto", False, {"type": "auto"}])
def test_auto_leaves_it_to_the_model(choice, scripted):
    prompt, sampling = asked(scripted, choice)
    assert "declaration:ring" in prompt
    assert sampling.grammar.opener == "<|tool_call>"
    assert not sampling.grammar.banned


@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_none_bans_calls_and_leaves_the_prompt_as_it_was(choice, scripted):
    prompt, sampling = asked(scripted, choice)
    assert sampling.grammar.banned == ("<|tool_call>",)
    assert prompt == asked(scripted, "auto")[0]


def test_where_calls_are_words_none_leaves_the_tools_out(scripted):
    prompt, sampling = asked(scripted, "none", dialect="gemma")
    assert "ring" not in prompt
    assert sampling.grammar.root is not None


def test_without_tools_there_are_no_calls(scripted):
    model, engine = scripted("Hello", logit_bias={5: 1.0})
    model.invoke("Hi")
    sampling = engine.submitted[0]["sampling"]
    assert sampling.logit_bias == {5: 1.0}
    assert sampling.grammar.banned == ("<|tool_call>",)
    assert sampling.grammar.root is None


def test_where_calls_are_words_nothing_holds_an_answer_without_tools(scripted):
    model, engine = scripted("Hello", dialect="gemma")
    model.invoke("Hi")
    assert engine.submitted[0]["sampling"].grammar is None


@pytest.mark.parametrize(("tools", "choice"), [([ring], "sing"), ([], "any"), ([ring], 3), ([ring], {"type": "x"})])
def test_a_choice_that_is_none_is_refused_when_it_is_bound(tools, choice, scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match="tool_choice"):
        model.bind_tools(tools, tool_choice=choice)


def sing(song: str) -> str:
    """Sings."""
    return song


FORCED = [
    ("any", {"ring", "sing"}),
    ("required", {"ring", "sing"}),
    (True, {"ring", "sing"}),
    ("ring", {"ring"}),
    ({"type": "function", "function": {"name": "sing"}}, {"sing"}),
    ({"type": "tool", "name": "sing"}, {"sing"}),
]


@pytest.mark.parametrize("dialect", ["gemma", "function_gemma", "gemma4"])
@pytest.mark.parametrize(("choice", "names"), FORCED)
def test_a_call_comes_whatever_the_model_is_like(choice, names, dialect, whole_of):
    model = whole_of(dialect, temperature=1.0).bind_tools([ring, sing], tool_choice=choice)
    for seed in range(3):
        answer = model.invoke("HELLO", seed=seed)
        assert answer.tool_calls
        assert not answer.invalid_tool_calls
        assert not answer.text
        for call in answer.tool_calls:
            assert call["name"] in names
            Draft202012Validator(SCHEMAS[call["name"]]).validate(call["args"])


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["gemma", "function_gemma", "gemma4"])
def test_one_call_alone(dialect, whole_of):
    for against in (0.0, -2.0, -4.0, -8.0):  # against the end of the turn: a tiny model may like it too well
        bias = toward_ends(dialect, of_turns=False) | ends_of_turns(dialect, against)
        model = whole_of(dialect, temperature=1.0, logit_bias=bias).bind_tools([ring, sing], tool_choice="any")
        if seeds := [seed for seed in range(6) if len(model.invoke("HELLO", seed=seed).tool_calls) > 1]:
            break
    assert seeds, "left to itself the model calls several"
    for seed in seeds:
        assert len(model.invoke("HELLO", seed=seed, parallel_tool_calls=False).tool_calls) == 1


@pytest.mark.parametrize("dialect", ["function_gemma", "gemma4"])
def test_a_call_that_the_model_opens_is_valid(dialect, whole_of):
    opener = {"gemma4": "<|tool_call>", "function_gemma": "<start_function_call>"}[dialect]
    model = whole_of(dialect, temperature=1.0)
    begin, called = engine().load(model.model).model.tokenizer.control_id(opener), 0
    bias = toward_ends(dialect, of_turns=False) | {begin: 31}
    for seed in range(6):
        bound = model.bind_tools([ring, sing], logit_bias=bias, parallel_tool_calls=False)
        answer = bound.invoke("HELLO", seed=seed)
        called += len(answer.tool_calls)
        for call in answer.tool_calls:
            Draft202012Validator(SCHEMAS[call["name"]]).validate(call["args"])
        assert not answer.invalid_tool_calls
    assert called
