"""The constraints of an answer, and the parts that cannot be promised."""

from __future__ import annotations

import json
from functools import reduce
from operator import add

import pytest

from langchain_gemma_jax import ChatGemmaJax, InputError, SchemaError, UnpromisedWarning


@pytest.mark.parametrize("bound", ["response_format", "structure", "function"])
def test_what_cannot_be_promised_is_named_when_it_is_bound(bound, scripted):
    model, _ = scripted()
    wanted = {"title": "mark", "type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}}

    def bind(**given: object) -> object:
        if bound == "structure":
            return model.with_structured_output(wanted, **given)
        if bound == "function":
            return model.with_structured_output(wanted, method="function_calling", **given)
        strict = {"strict": given["strict"]} if given else {}
        return model.bind_tools([], response_format={"type": "json_schema", "json_schema": {"schema": wanted} | strict})

    with pytest.raises(SchemaError, match=r"tags.*uniqueItems.*strict=False"):
        bind()
    bind(strict=False)


OPENER, CLOSER, END = "<|tool_call>", "<tool_call|>", "<|tool_response>"


# Each with arguments that fit, and some that do not.
HARD = {
    "uniqueItems": ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, ["a", "b"], ["a", "a"]),
    "lookahead": ({"type": "string", "pattern": "^(?=.*x)[a-z]+$"}, "axb", "ab"),
    "boundary": ({"type": "string", "pattern": r"\bred\b"}, "a red one", "shredded"),
    "regex": ({"type": "string", "format": "regex"}, "a+", "a("),
    "not": ({"type": "string", "not": {"enum": ["root"]}}, "me", "root"),
    "if": (
        {"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"minimum": 0}},
        20,
        15,
    ),
    "contains": ({"type": "array", "items": {"type": "integer"}, "contains": {"const": 7}}, [1, 7], [1, 2]),
    "oneOf": (
        {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 5}]},
        9,
        3,
    ),
}


def tool_of(schema: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": "mark", "parameters": {"type": "object", "properties": {"x": schema}, "required": ["x"], **more}}


def written(value: object) -> str:
    """A value in Gemma 4's notation."""
    if isinstance(value, str):
        return f'<|"|>{value}<|"|>'
    return f"[{','.join(map(written, value))}]" if isinstance(value, list) else str(value)


def called(value: object) -> str:
    return f"{OPENER}call:mark{{x:{written(value)}}}{CLOSER}{END}"


def whole(chunks):
    return reduce(add, chunks)


@pytest.mark.parametrize("word", HARD)
def test_a_hard_schema_is_kept_to_and_kills_no_agent(word, scripted):
    schema, good, bad = HARD[word]
    model, _ = scripted(called(good), called(bad), called(bad), called(good))
    with pytest.warns(UnpromisedWarning, match="mark: #/properties/x.*invalid_tool_call") as caught:
        bound = model.bind_tools([tool_of(schema)])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [call["args"] for call in bound.invoke("Hi").tool_calls] == [{"x": good}]
    refused = bound.invoke("Hi")
    assert not refused.tool_calls
    (invalid,) = refused.invalid_tool_calls
    assert json.loads(invalid["args"]) == {"x": bad}
    assert "as the schema of 'mark' asks" in invalid["error"]
    assert "arguments.x" in invalid["error"]
    streamed = whole(bound.stream("Hi"))
    assert not streamed.tool_calls
    assert len(streamed.invalid_tool_calls) == 1
    streamed = whole(bound.stream("Hi"))
    assert [call["args"] for call in streamed.tool_calls] == [{"x": good}]


def test_dependent_members_are_looked_at(scripted):
    parameters = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    tool = {"name": "mark", "parameters": parameters | {"dependentRequired": {"x": ["y"]}}}
    model, _ = scripted(called(1))
    with pytest.warns(UnpromisedWarning):
        bound = model.bind_tools([tool])
    assert "'x' needs a member 'y'" in bound.invoke("Hi").invalid_tool_calls[0]["error"]


def test_strict_raises_or_does_not_look(scripted):
    schema, _, bad = HARD["uniqueItems"]
    model, _ = scripted(called(bad), called(bad))
    for refusing in (
        lambda: model.bind_tools([tool_of(schema)], strict=True),
        lambda: model.model_copy(update={"strict": True}).bind_tools([tool_of(schema)]),
        lambda: model.bind_tools([{"type": "function", "function": tool_of(schema) | {"strict": True}}, ring]),
    ):
        with pytest.raises(SchemaError, match="uniqueItems"):
            refusing()
    for trusting in (
        model.bind_tools([tool_of(schema)], strict=False),
        ChatGemmaJax(model="scripted", strict=False).bind_tools([tool_of(schema)]),
    ):
        assert trusting.invoke("Hi").tool_calls[0]["args"] == {"x": bad}
    with pytest.raises(InputError, match="strict: expected True or False"):
        ChatGemmaJax(strict="yes")


def ring(times: int) -> str:
    """Rings."""
    return "ding" * times
