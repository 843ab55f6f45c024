"""The ways to ask for an answer's form."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from langchain_gemma_jax import InputError, SchemaError


class Color(BaseModel):
    """A color."""

    name: Literal["red", "green"]
    share: Annotated[float, Field(ge=0, le=1)]
    code: str = Field(pattern="^[0-9a-f]{6}$")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"schema": Color, "method": "xml"}, "method: expected one of json_schema, function_calling, json_mode"),
        ({"schema": None}, "schema: expected one"),
        ({"schema": 3}, "schema: expected a class"),
        ({"schema": {"description": "nothing"}}, "schema: expected a class"),
        ({"schema": Color, "method": "json_mode", "strict": True}, "Leave strict out"),
    ],
)
def test_what_is_not_possible_is_refused(given, match, scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match=match):
        model.with_structured_output(**given)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_a_malformed_schema_is_named_when_it_is_bound(method, scripted):
    model, _ = scripted()
    broken = {"title": "x", "description": "y", "type": "object", "properties": {"a": {"type": "strnig"}}}
    with pytest.raises(SchemaError, match="a"):
        model.with_structured_output(broken, method=method)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"type": "json_schema"}, r'expected {"type": "json_schema", "json_schema": {"name"'),
        (3, "schema: expected a class of pydantic"),
        ({"type": "xml"}, r'{"type": "json_schema", ...} or a JSON schema; found the type \'xml\'.\n'),
    ],
)
def test_a_response_format_that_is_none_is_refused(wrong, says, scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match=says):
        model.invoke("HELLO", response_format=wrong)


def test_text_is_a_response_format_too(scripted):
    model, engine = scripted("HELLO<turn|>")
    model.invoke("HELLO", response_format={"type": "text"})
    assert engine.submitted[0]["sampling"].grammar.root is None
