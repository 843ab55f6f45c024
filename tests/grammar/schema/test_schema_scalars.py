"""Strings and numbers, as JSON Schema asks for them."""

from __future__ import annotations

import pytest

from tests.dialects.walks import check_let_through

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (STRING, ["", 'a "b" \\ \n\té😀', "<|turn>"], [1, None]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", '"\n"', "日本語"], ["a", "abcd"]),
        ({"type": "string", "pattern": "^a+b?$"}, ["a", "aab"], ["b", "abb", ""]),
        ({"type": "string", "pattern": "b"}, ["b", "abc"], ["", "ac"]),
        ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a", "aa"], ["aaa"]),
        ({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}, ["az", "a z"], ["a", "z"]),
        (INTEGER, [0, -1, 10**17], [0.5, "1", True]),
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, [-3, 0, 11], [-4, 12, 100]),
        ({"type": "integer", "multipleOf": 25}, [0, 75, -1050], [20, 101]),
        ({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 30}, [0, 28], [8, 35]),
        ({"type": "number", "minimum": -0.5, "maximum": 1.25}, [-0.5, 0, 1.2, 1.25], [-0.51, 1.3, 2]),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.001, 0.999], [0, 1]),
        ({"type": "number", "multipleOf": 0.01}, [1.25, 3], [1.255]),
        ({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}, [4], [3]),  # as in draft 4
        ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    check_let_through(schema, yes, no)
