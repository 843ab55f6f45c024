from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.dialects import Tool
from langchain_gemma_jax.dialects.native.declared_schema import lowered
from langchain_gemma_jax.errors import InputError
from tests.goldens_dialects import made_up

NULL, STRING, INTEGER = {"type": "null"}, {"type": "string"}, {"type": "integer"}


def property_of(schema: object, **root: object) -> object:
    made = lowered({"type": "object", "properties": {"p": schema}, **root})
    return made["properties"]["p"]


@pytest.mark.parametrize("seed", range(200))
def test_what_the_templates_know_stays_as_it_is(seed):
    schema = made_up.schema(random.Random(seed))
    assert property_of(schema) == schema


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [STRING, NULL]}, {"type": "string", "nullable": True}),
        ({"anyOf": [NULL, STRING], "description": "d"}, {"type": "string", "nullable": True, "description": "d"}),
        ({"anyOf": [STRING | {"description": "inner"}], "description": "d"}, STRING | {"description": "d"}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["integer", "string"]}, {"type": "integer|string"}),
        ({"type": ["null"]}, NULL),
        ({"anyOf": [NULL]}, NULL),
        ({"oneOf": [INTEGER, STRING, INTEGER]}, {"type": "integer|string"}),
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        ({"const": 1}, {"enum": [1], "type": "integer"}),
        ({"enum": ["a", None]}, {"enum": ["a"], "type": "string", "nullable": True}),
        ({"enum": [1, True, 2.5]}, {"enum": [1, True, 2.5], "type": "integer|boolean|number"}),
        ({"enum": [None]}, {"enum": [None], "type": "null"}),
        ({"anyOf": [{"enum": ["a"]}, {"enum": ["b", "a"]}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"enum": ["a"]}, STRING]}, STRING),
        ({"items": STRING}, {"type": "array", "items": STRING}),
        (
            {"type": "array", "items": {"type": ["integer", "null"]}},
            {"type": "array", "items": INTEGER | {"nullable": True}},
        ),
        ({"type": "array", "prefixItems": [STRING, INTEGER]}, {"type": "array", "items": {"type": "string|integer"}}),
        ({"type": "array", "items": True}, {"type": "array"}),
        ({"type": "object", "additionalProperties": False, "title": "T"}, {"type": "object"}),
        ({"properties": {"title": STRING}}, {"type": "object", "properties": {"title": STRING}}),
        ({"allOf": [{"type": "string"}, {"description": "d"}]}, STRING | {"description": "d"}),
        (True, {}),
        ({}, {}),
        (None, {}),
    ],
    ids=str,
)
def test_what_they_do_not_know_is_said_in_their_words(schema, expected):
    assert property_of(schema) == expected
    assert property_of(expected) == expected


def test_objects_that_are_alternatives_or_parts_are_laid_over_each_other():
    first = {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]}
    second = {"type": "object", "properties": {"b": INTEGER, "c": INTEGER}, "required": ["b", "c"]}
    either = property_of({"anyOf": [first, second]})
    assert either["properties"] == {"a": STRING, "b": STRING, "c": INTEGER}
    assert either["required"] == ["b"]
    both = property_of({"allOf": [first, second]})
    assert both["properties"] == {"a": STRING, "b": INTEGER, "c": INTEGER}
    assert both["required"] == ["a", "b", "c"]


def test_lists_that_are_alternatives():
    lists = [{"type": "array", "items": STRING}, {"type": "array", "items": INTEGER}]
    assert property_of({"anyOf": lists}) == {"type": "array", "items": {"type": "string|integer"}}


def test_references_are_followed():
    definitions = {"a/b": {"type": "string", "description": "there"}}
    assert property_of({"$ref": "#/$defs/a~1b"}, **{"$defs": definitions}) == definitions["a/b"]
    here = {"$ref": "#/$defs/a~1b", "description": "here"}
    assert property_of(here, **{"$defs": definitions}) == STRING | {"description": "here"}


def test_a_schema_that_contains_itself_is_shown_once():
    node = {"type": "object", "description": "a node", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/N"}, NULL]}}}
    inner = {"type": "object", "description": "a node", "nullable": True}
    assert property_of({"$ref": "#/$defs/N"}, **{"$defs": {"N": node}})["properties"] == {"next": inner}


@pytest.mark.parametrize("reference", ["#/$defs/B", "other.json#/A", "#/properties/p/type", "https://example.org/a"])
def test_a_reference_that_leads_nowhere_is_refused(reference):
    with pytest.raises(InputError, match="refers to"):
        property_of({"$ref": reference, "type": "string"}, **{"$defs": {"A": STRING}})


def test_a_few_lines_that_stand_for_billions_are_refused():
    definitions = {
        f"D{n}": {"type": "object", "properties": {key: {"$ref": f"#/$defs/D{n + 1}"} for key in "ab"}}
        for n in range(20)
    }
    with pytest.raises(InputError, match="10,000 parts"):
        property_of({"$ref": "#/$defs/D0"}, **{"$defs": definitions | {"D20": STRING}})


def test_what_is_nested_too_deep_is_refused():
    schema: dict = STRING
    for _ in range(3000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(InputError, match="64 levels"):
        property_of(schema)


def test_parameters_are_an_object_even_if_they_do_not_say_so():
    assert lowered({"properties": {"a": STRING}})["type"] == "object"
    assert lowered({"anyOf": [{"properties": {"a": STRING}}]})["properties"] == {"a": STRING}
    assert lowered({}) == {}


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"name": ""},
        {"name": 3},
        {"function": "f"},
        {"name": "f", "parameters": [1]},
        {"name": "f", "description": 1},
    ],
)
def test_a_tool_that_is_not_in_openais_form_is_refused(declared):
    with pytest.raises(InputError, match="expected"):
        Tool.of(declared)


def test_a_tool_in_either_of_openais_forms():
    bare = {"name": "f", "description": None, "parameters": {"type": "object"}}
    assert Tool.of(bare) == Tool.of({"type": "function", "function": bare}) == Tool("f", "", {"type": "object"})
