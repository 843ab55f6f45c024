"""Whatever a grammar lets through is JSON that is valid against its schema."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.errors import SchemaError
from tests.counted import lines
from tests.dialects.schemas import Schemas
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import check, constraints, takes, tokens_of, walk

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def said(grammar, rng, most=200, **how):
    return json.loads(tokenizer().decode(walk(grammar, rng, most, **how)))


def fits(schema, value, **options) -> bool:
    """Whether the grammar of a schema lets a value through, as Python's ``json`` writes it."""
    return takes(json_grammar(schema, **options), json.dumps(value, ensure_ascii=False))


def validity(seed):
    rng = random.Random(seed)
    schema = Schemas(rng).whole()
    try:
        grammar = json_grammar(schema)
    except SchemaError as error:
        assert "no value fits" in error.problem  # noqa: PT017  recursion without an end is made now and then
        return
    for _ in range(3):
        value = said(grammar, rng, rng.randint(1, 200), hurry=rng.choice([0.02, 0.3]))
        check(value, schema)


@pytest.mark.parametrize("seeds", [range(first, first + 10) for first in range(0, 100, 10)], ids=str)
def test_whatever_is_let_through_is_valid(seeds):
    for seed in seeds:
        validity(seed)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_of_two_thousand_schemas_too():
    for seed in range(1000, 3000):
        validity(seed)


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (STRING, ["", 'a "b" \\ \n\té😀', "<|turn>"], [1, None]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", '"\n"', "日本語"], ["a", "abcd"]),
        ({"type": "string", "pattern": "^a+b?$"}, ["a", "aab"], ["b", "abb", ""]),
        ({"type": "string", "pattern": "b"}, ["b", "abc"], ["", "ac"]),
        ({"type": "string", "pattern": "^a+$", "maxLength": 2}, ["a", "aa"], ["aaa"]),
        ({"allOf": [{"pattern": "^a"}, {"pattern": "z$"}], "type": "string"}, ["az", "a z"], ["a", "z"]),
        ({"type": "string", "format": "date"}, ["2024-02-29", "1999-12-31"], ["2023-02-29", "1999-13-01", "x"]),
        ({"type": "string", "format": "a kind of its own"}, ["anything"], [1]),
        (INTEGER, [0, -1, 10**17], [0.5, "1", True]),
        ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, [-3, 0, 11], [-4, 12, 100]),
        ({"type": "integer", "multipleOf": 25}, [0, 75, -1050], [20, 101]),
        ({"type": "integer", "multipleOf": 7, "minimum": 0, "maximum": 30}, [0, 28], [8, 35]),
        ({"type": "number", "minimum": -0.5, "maximum": 1.25}, [-0.5, 0, 1.2, 1.25], [-0.51, 1.3, 2]),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.001, 0.999], [0, 1]),
        ({"type": "number", "multipleOf": 0.01}, [1.25, 3], [1.255]),
        ({"minimum": 3, "exclusiveMinimum": True, "type": "integer"}, [4], [3]),  # as in draft 4
        ({"type": "integer", "format": "int32"}, [2**31 - 1], [2**31]),
        ({"enum": ["a", 1, None, [True, {"b": 2}]]}, ["a", 1, None, [True, {"b": 2}]], ["b", False]),
        ({"enum": ["a", 1, 2.5], "type": "number", "minimum": 2}, [2.5], ["a", 1]),
        ({"const": {"x": [1]}}, [{"x": [1]}], [{"x": [2]}, {}]),
        ({"type": ["string", "null"]}, ["x", None], [1]),
        ({"anyOf": [INTEGER, {"type": "null"}]}, [3, None], ["3"]),
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
        (
            {"type": "array", "items": {"enum": ["a", 1, True]}, "uniqueItems": True, "minItems": 1},
            [["a"], ["a", 1], ["a", True]],
            [[], ["a", "a"], [1, "a"]],
        ),
        (True, [None, 1, [1, {"a": "b"}]], []),
        ({"properties": {"q": STRING}, "unevaluatedProperties": False, "type": "object"}, [{"q": "x"}], [{"r": 1}]),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    assert [value for value in yes if not fits(schema, value)] == []
    assert [value for value in no if fits(schema, value)] == []
    assert constraints().of(json_grammar(schema), frozenset(), forces=False)  # and llguidance takes it


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"not": STRING}, "not"),
        ({"if": {}, "then": {}}, "if"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "contains": INTEGER}, "contains"),
        ({"type": "integer", "multipleOf": 1009}, "multipleOf 1009"),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"type": "string", "format": "regex"}, "format 'regex'"),
        ({"oneOf": [STRING, {"type": "string", "minLength": 2}]}, "oneOf"),
        ({"type": "object", "properties": {"deep": {"items": {"not": {}}}}}, "not"),
        ({"propertyNames": {"$ref": "#/x"}, "type": "object"}, "propertyNames"),
    ],
    ids=str,
)
def test_what_cannot_be_promised_is_named_and_where(schema, named):
    with pytest.raises(SchemaError, match="cannot promise") as caught:
        json_grammar(schema)
    assert caught.value.problem.startswith(named)
    (left_out, *_) = json_grammar(schema, lenient=True).unpromised
    assert named in left_out
    assert left_out.startswith(caught.value.at)


def test_an_alternative_that_cannot_be_promised_is_left_out_if_there_is_another():
    decimal = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"}]}
    schema = {"type": "object", "properties": {"x": decimal}}
    assert fits(schema, {"x": 1.5})
    assert not fits(schema, {"x": "1.5"})
    (left_out,) = json_grammar(schema).unpromised
    assert left_out.startswith("#/properties/x/anyOf/1: the pattern")
    with pytest.raises(SchemaError, match="looks ahead"):
        json_grammar({"anyOf": decimal["anyOf"][1:]})
    with pytest.raises(SchemaError, match="type: expected"):  # which is no question of promises
        json_grammar({"anyOf": [{"type": "string"}, {"type": "strin"}]})


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083}, "https://a.bc/d?e=%20#f", "a"),
        ({"type": "string", "pattern": "^[ab]{3}$", "minLength": 2, "maxLength": 9}, "aba", "ab"),
        ({"type": "string", "pattern": "^[ab]+$", "minLength": 2, "maxLength": 3}, "ab", "abab"),
        ({"type": "string", "pattern": "^[ab ]+$", "maxLength": 5000}, "ab" * 400, "ab" * 3000),
        ({"type": "number", "multipleOf": 0.5}, -12.5, 0.25),
    ],
    ids=str,
)
def test_lengths_beside_patterns(schema, yes, no):
    assert fits(schema, yes)
    assert not fits(schema, no)


def test_where_in_the_schema_it_is():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "strin"}}}}
    with pytest.raises(SchemaError) as caught:
        json_grammar(schema)
    assert caught.value.at == "#/properties/a/items"


def test_recursion_ends_so_that_no_reader_of_json_gives_up():
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}, "required": ["kids"]}
    grammar = json_grammar(tree)
    rng = random.Random(4)
    for _ in range(20):
        check(said(grammar, rng, 600), tree)
    deepest = "".join('{"kids": [' for _ in range(40))
    rule = constraints().of(grammar, frozenset(), forces=False)
    assert not all(map(rule.take, tokens_of(deepest)))


def test_a_schema_of_two_hundred_properties_is_compiled_in_a_few_steps_each():
    kinds = [STRING, INTEGER, {"type": "boolean"}, {"enum": ["a", "b"]}, {"anyOf": [STRING, {"type": "null"}]}]
    json_grammar({"type": "object", "properties": {"warm": STRING}})
    attempts = itertools.count()

    def compile_anew():
        attempt = next(attempts)
        properties = {f"p{attempt}_{i}": kinds[i % 5] | {"title": f"The {i}th"} for i in range(200)}
        grammar = json_grammar({"type": "object", "properties": properties, "required": [f"p{attempt}_7"]})
        assert constraints().of(grammar, frozenset(), forces=True)

    assert lines(compile_anew) < 200 * 2000


def test_grammars_of_the_same_things_are_equal():
    first, second = (json_grammar({"type": "object", "properties": {"once": STRING}}) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != json_grammar({"type": "object", "properties": {"twice": STRING}})


def test_what_can_be_promised_is_preferred_also_where_the_rest_is_left_out():
    unusual = {"type": "string", "pattern": "^(?!x)a"}
    price = {"anyOf": [{"type": "number"}, unusual]}
    for lenient in (False, True):
        grammar = json_grammar(price, lenient=lenient)
        assert len(grammar.unpromised) == 1
        assert grammar.root == json_grammar({"type": "number"}).root
    with pytest.raises(SchemaError):
        json_grammar({"anyOf": [unusual, unusual]})
    assert json_grammar({"anyOf": [unusual, unusual]}, lenient=True).unpromised
