"""Objects, as JSON Schema asks for them."""

from __future__ import annotations

import pytest

from tests.dialects.walks import check_let_through

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (
            {"properties": {"a": STRING, "b": INTEGER}, "required": ["b"]},
            [{"b": 1}, {"a": "x", "b": 1}],
            [{}, {"a": "x"}, {"b": 1, "a": "x"}, {"b": 1, "c": 2}],
        ),
        ({"type": "object", "properties": {}}, [{}], [{"a": 1}]),
        ({"type": "object"}, [{}, {"a": [1, {"b": "c"}]}], [[]]),
        ({"type": "object", "additionalProperties": INTEGER}, [{}, {"a": 1, "é": 2}], [{"a": "b"}]),
        (
            {"properties": {"a": STRING}, "additionalProperties": INTEGER, "type": "object"},
            [{"a": "x"}, {"b": 1}, {"a": "x", "b": 1, "aa": 2}],
            [{"a": 1}, {"b": "x"}],
        ),
        (
            {"type": "object", "patternProperties": {"^x": INTEGER}, "additionalProperties": False},
            [{"x1": 1}],
            [{"y": 1}],
        ),
        (
            {"propertyNames": {"enum": ["a", "b"]}, "additionalProperties": INTEGER, "type": "object"},
            [{}, {"b": 1}, {"a": 1, "b": 2}],
            [{"c": 1}],
        ),
        ({"type": "object", "additionalProperties": INTEGER, "minProperties": 1}, [{"a": 1}], [{}]),
        (
            {"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2, "maxProperties": 2, "type": "object"},
            [{"a": 1, "c": 2}, {"b": 1, "c": 2}],
            [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}],
        ),
        ({"properties": {"a": False, "b": True}, "type": "object"}, [{}, {"b": 1}], [{"a": 1}]),
        ({"properties": {"q": STRING}, "unevaluatedProperties": False, "type": "object"}, [{"q": "x"}], [{"r": 1}]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    check_let_through(schema, yes, no)
