"""A schema refuses what jsonschema's own validator refuses; and whatever the pattern, it takes no time."""

from __future__ import annotations

import random

import pytest
from jsonschema import Draft202012Validator

from langchain_gemma_jax.grammar.schema.validation import violation
from tests.counted import lines

LEAVES = [
    {"type": "integer", "minimum": 0, "exclusiveMaximum": 4},
    {"type": ["string", "null"], "minLength": 1, "maxLength": 2},
    {"type": "string", "pattern": r"^(?=a)\w+$"},
    {"multipleOf": 0.5},
    {"enum": [1, "a", [1], {"a": 1}, None, True]},
    {"const": 1.0},
    {"$ref": "#/$defs/node"},
    True,
    {},
]
VALUES = [0, 1, 1.0, 2.5, 4, "", "a", "ab", "abc", "b", None, True, False, [], [1], {}, {"a": 1}]


def schema(draw: random.Random, depth: int) -> object:
    if depth == 0 or draw.random() < 0.2:
        return draw.choice(LEAVES)
    below = [schema(draw, depth - 1) for _ in range(3)]
    return draw.choice(
        [
            {"allOf": below[:2]},
            {"anyOf": below[:2]},
            {"oneOf": below},
            {"not": below[0]},
            {"if": below[0], "then": below[1], "else": below[2]},
            {"items": below[0], "uniqueItems": True, "minItems": 1},
            {"prefixItems": below[:1], "items": below[1], "maxItems": 3},
            {"contains": below[0], "minContains": draw.randrange(2), "maxContains": 2},
            {"properties": {"a": below[0]}, "additionalProperties": below[1], "required": ["a"]},
            {"patternProperties": {"^a": below[0]}, "propertyNames": {"maxLength": 1}, "minProperties": 1},
            {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": below[0]}, "maxProperties": 2},
        ]
    )


def value(draw: random.Random, depth: int) -> object:
    if depth == 0 or draw.random() < 0.3:
        return draw.choice(VALUES)
    if draw.random() < 0.5:
        return [value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {name: value(draw, depth - 1) for name in draw.sample(["a", "b", "ab"], draw.randrange(4))}


@pytest.mark.long
def test_it_agrees_with_jsonschema():
    draw, refused = random.Random(1), 0
    node = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/node"}}]}
    for _ in range(1500):
        asked = {"allOf": [schema(draw, 3)], "$defs": {"node": node}}
        validator = Draft202012Validator(asked)
        for _ in range(4):
            given = value(draw, 3)
            found = violation(given, asked)
            assert (found is None) == validator.is_valid(given), (asked, given, found)
            refused += found is not None
    assert 1000 < refused < 5000


@pytest.mark.parametrize(
    ("asked", "given", "valid"),
    [
        ({"minimum": 1, "exclusiveMinimum": True}, 1, False),  # draft 4
        ({"items": [{"type": "integer"}], "additionalItems": False}, [1, 2], False),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1}, False),
        ({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"c": 1, "d": 1}, True),
        ({"pattern": "^a$"}, "a\n", False),  # as JavaScript has it
        ({"pattern": r"^(?<year>\d{4})$"}, "2026", True),
        ({"pattern": r"^[\w$]+$"}, "a$", True),
        ({"pattern": r"^\p{L}+$"}, "1", True),  # Python has no such pattern: nobody can say
        ({"$ref": "#/nowhere"}, 1, True),
        ({"$ref": "#"}, 1, True),
    ],
)
def test_old_drafts_and_patterns_of_javascript(asked, given, valid):
    assert (violation(given, asked) is None) is valid


def test_nobody_makes_it_take_long():
    for pattern in (
        r"^(a+)+$",
        r"^(a|aa)+$",
        r"(?=(a*)*b)",
        r"^(\w+\s?)*$",
        r"a*a*a*a*a*a*b",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
    ):
        violation("a" * 5000 + "!", {"pattern": pattern})
    deep: dict[str, object] = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}
    wide = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}] * 50}, "b": {"not": {"anyOf": [True] * 50}}}, **deep}
    assert lines(lambda: violation([[[1] * 1000] * 50], {"items": wide | {"items": wide}})) < 1_000_000
    nested: object = 1
    for _ in range(3000):
        nested = [nested]
    assert violation(nested, {"items": {"$ref": "#"}}) is not None
