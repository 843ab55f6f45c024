"""Objects of a schema, whatever the model is like."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, NotRequired

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, Field
from pydantic.v1 import BaseModel as OldModel
from typing_extensions import TypedDict

from langchain_gemma_jax import engine
from tests.dialects.vocabulary import tokenizer

METHODS = ("json_schema", "function_calling", "json_mode")


class Color(BaseModel):
    """A color."""

    name: Literal["red", "green"]
    share: Annotated[float, Field(ge=0, le=1)]
    code: str = Field(pattern="^[0-9a-f]{6}$")


class Tree(BaseModel):
    """A tree."""

    size: Annotated[int, Field(ge=1, le=9)]
    branches: list[Tree] = Field(default=[], max_length=2)
    color: Color | None = None


class Old(OldModel):
    """Something old."""

    age: int


class Dictionary(TypedDict):
    """Something with members."""

    age: int
    name: NotRequired[str]


@dataclasses.dataclass
class Point:
    """A place."""

    x: int
    y: int = 0


@dataclasses.dataclass
class Line:
    """Two places."""

    begin: Point
    end: Point


LIST = {"type": "array", "items": {"type": "integer", "minimum": 3}, "minItems": 2, "maxItems": 3}
OBJECT = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schema", [Color, Tree, Old, Point, Line])
def test_classes_give_their_objects(schema, method, whole_of):
    model = whole_of(temperature=1.0).with_structured_output(schema, method=method)
    for seed in range(3):
        assert isinstance(model.bind(seed=seed).invoke("HELLO"), schema)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schema", [Dictionary, OBJECT | {"title": "Thing"}])
def test_what_has_no_class_gives_dictionaries(schema, method, whole_of):
    found = whole_of(temperature=1.0).with_structured_output(schema, method=method).invoke("HELLO", seed=1)
    assert isinstance(found["age"], int)
    assert set(found) <= {"age", "name"}


@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
def test_a_schema_needs_no_name_and_no_object(method, whole_of):
    found = whole_of(temperature=1.0).with_structured_output(LIST, method=method).invoke("HELLO", seed=1)
    assert 2 <= len(found) <= 3
    assert min(found) >= 3
    assert whole_of().with_structured_output(OBJECT, method=method).invoke("HELLO").keys() == {"age"}


def test_json_mode_goes_without_a_schema(whole_of):
    model = whole_of(temperature=1.0).with_structured_output(method="json_mode")
    assert isinstance(model.invoke("HELLO", seed=2), dict)


@pytest.mark.parametrize("method", METHODS)
def test_the_message_can_come_with_it(method, whole_of):
    found = whole_of().with_structured_output(Color, method=method, include_raw=True).invoke("HELLO")
    assert isinstance(found["raw"], AIMessage)
    assert isinstance(found["parsed"], Color)
    assert found["parsing_error"] is None


def test_what_cannot_be_made_is_told_with_the_message(scripted):
    model, _ = scripted('{"name": "blue"}<turn|>')
    found = model.with_structured_output(Color, include_raw=True).invoke("HELLO")
    assert found["parsed"] is None
    assert "blue" in str(found["parsing_error"])


@pytest.mark.parametrize("method", METHODS)
def test_streams_give_it_as_far_as_it_is_known(method, whole_of):
    schema = {
        "title": "Letters",
        "description": "Letters.",
        "type": "object",
        "properties": {name: {"type": "string", "minLength": 4, "maxLength": 8} for name in ("one", "two")},
        "required": ["one", "two"],
    }
    model = whole_of(temperature=1.0).with_structured_output(schema, method=method)
    seen = list(model.stream("HELLO", seed=3))
    assert len(seen) > 3
    assert seen[-1].keys() == {"one", "two"}
    assert {"one"} in [found.keys() for found in seen]
    assert seen[-1] == model.invoke("HELLO", seed=3)


async def test_asynchronous_streams_too(whole_of):
    model = whole_of(temperature=1.0).with_structured_output(Tree)
    seen = [found async for found in model.astream("HELLO", seed=3)]
    assert all(isinstance(found, Tree) for found in seen)
    assert seen[-1] == await model.ainvoke("HELLO", seed=3)


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["gemma", "function_gemma", "gemma4"])
@pytest.mark.parametrize("method", METHODS)
def test_in_every_format(method, dialect, whole_of):
    assert isinstance(whole_of(dialect, temperature=1.0).with_structured_output(Tree, method=method).invoke("HI"), Tree)


@pytest.mark.parametrize("method", METHODS)
def test_thoughts_can_come_before_it(method, whole_of):
    model = whole_of(thinking=True, temperature=1.0)
    tokenizer = engine().load(model.model).model.tokenizer
    begin, end = map(tokenizer.control_id, ("<|channel>", "<channel|>"))
    # Weights that learned nothing neither begin a thought by themselves nor end one.
    bias = model.logit_bias | {begin: 60, end: 30}
    bound = model.with_structured_output(Color, method=method, include_raw=True, logit_bias=bias)
    for seed in range(3):
        found = bound.invoke("HELLO", seed=seed)
        assert isinstance(found["parsed"], Color)
        assert found["raw"].usage_metadata["output_token_details"]["reasoning"] > 0
    without = whole_of().with_structured_output(Color, method=method, include_raw=True, logit_bias=bias)
    found = without.invoke("HELLO")
    assert isinstance(found["parsed"], Color)
    assert found["raw"].usage_metadata["output_token_details"]["reasoning"] == 0


def test_the_model_is_told_the_schema_at_the_end_of_the_system_message(scripted):
    model, engine = scripted(*['{"age": 3}<turn|>'] * 4)
    model.with_structured_output(OBJECT).invoke("HELLO")
    model.with_structured_output(OBJECT).invoke([("system", "BE BRIEF."), ("user", "HELLO")])
    model.with_structured_output(OBJECT, method="json_mode").invoke("HELLO")
    plain, after, untold = (tokenizer().decode(each["prompt"], keep_control=True) for each in engine.submitted)
    told = (
        'Answer in JSON of this schema:\n{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}'
    )
    assert plain.startswith(f"<bos><|turn>system\n{told}<turn|>")
    assert after.startswith(f"<bos><|turn>system\nBE BRIEF.\n\n{told}<turn|>")
    assert "schema" not in untold
    assert model.get_num_tokens_from_messages([HumanMessage("HELLO")]) < len(engine.submitted[0]["prompt"])


@pytest.mark.parametrize("dialect", ["gemma", "function_gemma", "gemma4"])
def test_an_agent_calls_tools_or_answers_in_the_schema(dialect, whole_of):
    def ring(times: int) -> str:
        """Rings the bell."""
        return "ding" * times

    wanted = {"type": "json_schema", "json_schema": {"name": "thing", "schema": OBJECT}}
    model = whole_of(dialect, temperature=1.0).bind_tools([ring], response_format=wanted)
    for seed in range(4):
        answer = model.invoke("HELLO", seed=seed)
        if answer.tool_calls:
            assert all(isinstance(call["args"]["times"], int) for call in answer.tool_calls)
        else:
            assert answer.text.startswith('{"age": ')
            assert answer.text.endswith("}")
