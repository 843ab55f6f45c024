"""Tools, in all the forms that LangChain's users have, and whether they may be called."""

from __future__ import annotations

from typing import TypedDict

import pytest
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_gemma_jax import InputError
from langchain_gemma_jax.engine.options import Sampling
from tests.dialects.vocabulary import tokenizer

OPENER, CLOSER = (tokenizer().control_id(name) for name in ("<|tool_call>", "<tool_call|>"))


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
        ("ring", "expected a list of tools"),
        (ring, "expected a list of tools"),
        ([ring, {"name": "ring", "parameters": {}}], "called 'ring' too"),
    ],
)
def test_what_is_no_tool_is_refused(tools, match, scripted):
    model, _ = scripted("Hello")
    with pytest.raises(InputError, match=match):
        model.invoke("Hi", tools=tools)


@pytest.mark.parametrize("tools", [[3], [{"type": "web_search"}], [{"name": "x", "parameters": 3}]])
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
    assert OPENER not in sampling.logit_bias
    assert CLOSER not in sampling.stop_ids


@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_none_bans_calls_and_leaves_the_prompt_as_it_was(choice, scripted):
    prompt, sampling = asked(scripted, choice)
    assert sampling.logit_bias[OPENER] == -100
    assert prompt == asked(scripted, "auto")[0]


def test_where_calls_are_words_none_leaves_the_tools_out(scripted):
    prompt, sampling = asked(scripted, "none", dialect="gemma")
    assert "ring" not in prompt
    assert not sampling.logit_bias


def test_without_tools_there_are_no_calls(scripted):
    model, engine = scripted("Hello", logit_bias={5: 1.0, OPENER: 50})
    model.invoke("Hi")
    assert engine.submitted[0]["sampling"].logit_bias == {5: 1.0, OPENER: -100}


@pytest.mark.parametrize(
    "choice",
    [
        "any",
        "required",
        True,
        "ring",
        {"type": "function", "function": {"name": "ring"}},
        {"type": "tool", "name": "ring"},
    ],
)
def test_what_cannot_be_promised_yet_is_refused_when_it_is_called(choice, scripted):
    model, engine = scripted("Hello")
    bound = model.bind_tools([ring], tool_choice=choice)
    with pytest.raises(InputError, match="a call cannot be forced yet"):
        bound.invoke("Hi")
    with pytest.raises(InputError, match="held to a schema yet"):
        model.invoke("Hi", response_format={"type": "json_object"})
    assert engine.submitted == []


@pytest.mark.parametrize(("tools", "choice"), [([ring], "sing"), ([], "any"), ([ring], 3), ([ring], {"type": "x"})])
def test_a_choice_that_is_none_is_refused_when_it_is_bound(tools, choice, scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match="tool_choice"):
        model.bind_tools(tools, tool_choice=choice)


@pytest.mark.parametrize("dialect", ["gemma4", "function_gemma"])
def test_one_call_ends_the_answer_if_there_is_to_be_one(dialect, scripted):
    begin, end = (
        ("<|tool_call>", "<tool_call|>") if dialect == "gemma4" else ("<start_function_call>", "<end_function_call>")
    )
    call = f"{begin}call:ring{{times:1}}{end}"
    model, _ = scripted(call * 2, call * 2, dialect=dialect)
    assert len(model.bind_tools([ring]).invoke("Hi").tool_calls) == 2
    assert len(model.bind_tools([ring], parallel_tool_calls=False).invoke("Hi").tool_calls) == 1


def test_where_calls_are_words_one_alone_cannot_be_promised_yet(scripted):
    with pytest.raises(InputError, match="parallel_tool_calls=False"):
        asked(scripted, None, dialect="gemma", parallel_tool_calls=False)
