"""Lists, as JSON Schema asks for them."""

from __future__ import annotations

import pytest

from tests.dialects.walks import check_let_through

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (
            {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 3},
            [[1], [1, 2, 3]],
            [[], [1, 2, 3, 4], ["a"]],
        ),
        ({"type": "array"}, [[], [1, "a", {"b": None}]], [{}]),
        (
            {"prefixItems": [STRING, INTEGER], "items": False, "type": "array"},
            [[], ["a"], ["a", 1]],
            [[1], ["a", 1, 2]],
        ),
        ({"prefixItems": [STRING], "items": INTEGER, "minItems": 2, "type": "array"}, [["a", 1], ["a", 1, 2]], [["a"]]),
        ({"items": [STRING, INTEGER], "additionalItems": STRING, "type": "array"}, [["a", 1, "b"]], [["a", 1, 2]]),
        (
            {"type": "array", "items": {"enum": ["a", 1, True]}, "uniqueItems": True, "minItems": 1},
            [["a"], ["a", 1], ["a", True]],
            [[], ["a", "a"], [1, "a"]],
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    check_let_through(schema, yes, no)
