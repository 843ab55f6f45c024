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
from tests.dialects.walks import check, constraints, fits, tokens_of, walk

STRING, INTEGER = {"type": "string"}, {"type": "integer"}


def said(grammar, rng, most=200, **how):
    return json.loads(tokenizer().decode(walk(grammar, rng, most, **how)))


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
