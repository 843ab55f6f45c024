"""Values, alternatives, parts and references of JSON Schema."""

from __future__ import annotations

import pytest

from tests.dialects.walks import check_let_through

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"enum": ["a", 1, None, [True, {"b": 2}]]}, ["a", 1, None, [True, {"b": 2}]], ["b", False]),
        ({"enum": ["a", 1, 2.5], "type": "number", "minimum": 2}, [2.5], ["a", 1]),
        ({"const": {"x": [1]}}, [{"x": [1]}], [{"x": [2]}, {}]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"anyOf": [INTEGER, {"type": "null"}]}, [3, None], ["3"]),
        (
            {"allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {"maximum": 5}}}], "$defs": {
                "A": {"type": "object", "properties": {"a": STRING, "b": INTEGER}, "required": ["a"]}}},
            [{"a": "x"}, {"a": "x", "b": 5}],
            [{"b": 1}, {"a": "x", "b": 6}],
        ),
        (
            {"$ref": "#/definitions/T", "definitions": {"T": {"type": "object", "properties": {
                "v": INTEGER, "next": {"anyOf": [{"$ref": "#/definitions/T"}, {"type": "null"}]}}}}},
            [{}, {"v": 1, "next": {"v": 2, "next": None}}],
            [{"next": 1}],
        ),
        ({"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": INTEGER}}, [1], ["x"]),
        (
            {"oneOf": [{"type": "object", "properties": {"t": {"const": tag}, "v": kind}, "required": ["t", "v"]}
                       for tag, kind in (("i", INTEGER), ("s", STRING))]},
            [{"t": "i", "v": 1}, {"t": "s", "v": "x"}],
            [{"t": "i", "v": "x"}, {"t": "z", "v": 1}],
        ),
        (True, [None, 1, [1, {"a": "b"}]], []),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    check_let_through(schema, yes, no)
