"""Schemas that are malformed or mean harm: an error that says so, soon, and nothing else."""

from __future__ import annotations

import gc
import json
import math
import random
import resource
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from langchain_gemma_jax.dialects import Tool, grammar_for, json_grammar
from langchain_gemma_jax.dialects.conversation.messages import Message, ToolCall
from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.dialects.function_gemma import FunctionGemmaDialect
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.nodes import Grammar
from tests.counted import lines
from tests.dialects import hostile
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import allowed, constraints, tokens_of

LINES = 5_000_000  # of Python: some tenths of a second
MEGABYTES = 32


def nested(count: int) -> Any:
    found: Any = {"type": "string"}
    for _ in range(count):
        found = {"type": "object", "properties": {"a": found}, "required": ["a"]}
    return found


def unions(count: int) -> Any:
    found: Any = {"type": "string"}
    for _ in range(count):
        found = {"anyOf": [found, {"type": "null"}]}
    return found


def doubling(count: int, word: str) -> Any:
    """Each definition refers to the next one ten times."""
    definitions: dict[str, Any] = {f"d{count}": {"type": "string"}}
    for number in range(count):
        following = [{"$ref": f"#/$defs/d{number + 1}"}] * 10
        members = {"type": "object", "properties": dict(zip("abcdefghij", following, strict=True))}
        definitions[f"d{number}"] = (
            members | {"required": list("abcdefghij")} if word == "properties" else {word: following}
        )
    return {"$defs": definitions, "$ref": "#/$defs/d0"}


def endless() -> Any:
    found: dict[str, Any] = {"type": "object"}
    found["properties"] = {"me": found}
    return found


def endless_list() -> Any:
    found: list[Any] = []
    found.append(found)
    return {"enum": found}


def repeated(count: int) -> Any:
    found: Any = {"type": "string"}
    for _ in range(count):
        found = {"type": "array", "items": found, "maxItems": 5}
    return found


RANGES = "".join(f"{chr(0x4E00 + 3 * i)}-{chr(0x4E01 + 3 * i)}" for i in range(200))

REFUSED = {
    "nothing": None,
    "a number": 3,
    "a list": [],
    "a text": "{}",
    "an object of a class": object(),
    "never": False,
    "an unknown type": {"type": "strin"},
    "no type": {"type": []},
    "a type that is an object": {"type": {"a": 1}},
    "not a number": {"const": math.nan},
    "no number": {"minimum": math.inf},
    "keys that are numbers": {1: 2},
    "bytes": {"const": b"x"},
    "a set": {"enum": {1}},
    "half a character as a key": {"properties": {"\ud800": {}}},
    "half a character": {"enum": ["\udfff"]},
    "half a character in a pattern": {"pattern": "a\ud800"},
    "holds itself": endless(),
    "a list that holds itself": endless_list(),
    "a reference to elsewhere": {"$ref": "http://127.0.0.1/x.json"},
    "a reference to a file": {"$ref": "file:///etc/passwd"},
    "a reference to nothing": {"$ref": "#/nope"},
    "a reference that is none": {"$ref": 3},
    "refers to itself": {"$ref": "#"},
    "two that refer to each other": {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "is one of itself": {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
    "is a string of itself": {"type": "string", "anyOf": [{"$ref": "#"}, {"type": "string"}]},
    "is all of itself": {"allOf": [{"$ref": "#"}]},
    "never ends": {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    "40 levels": nested(40),
    "1,000 levels": nested(1000),
    "10,000 levels": nested(10_000),
    "unions in unions": unions(1000),
    "10,000 properties": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(10_000)}},
    "3,000 properties": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(3000)}},
    "a bomb of members": doubling(12, "properties"),
    "a bomb of conditions": doubling(12, "allOf"),
    "5 megabytes": {"description": "x" * 5_000_000},
    "a count of counts": {"pattern": "a{1000}{1000}"},
    "a pattern of a billion": {"pattern": "((a{1000}){1000}){1000}"},
    "a pattern that looks ahead": {"pattern": "(?=a)b"},
    "a pattern that looks back": {"pattern": r"(a)\1"},
    "an open bracket": {"pattern": "["},
    "an open group": {"pattern": "("},
    "500 groups": {"pattern": "(" * 500 + ")" * 500},
    "a long pattern": {"pattern": "a" * 10_000},
    "a class of letters": {"pattern": r"\p{L}"},
    "a pattern that is a number": {"pattern": 3},
    "a pattern that is too short": {"pattern": "^a$", "minLength": 5},
    "a key pattern that is none": {"type": "object", "patternProperties": {"(": {}}},
    "a long text": {"type": "string", "minLength": 10**9},
    "a length below zero": {"type": "string", "minLength": -1},
    "a long list": {"type": "array", "minItems": 10**9},
    "a longer list": {"type": "array", "items": {"type": "null"}, "minItems": 10**18},
    "bounds that cross": {"type": "integer", "minimum": 5, "maximum": 4},
    "a number of 900 digits": {"type": "integer", "minimum": 10**900},
    "a number of 5,000 digits": {"const": 10**5000},
    "a large number": {"type": "number", "minimum": 1e300},
    "multiples of zero": {"type": "integer", "multipleOf": 0},
    "multiples of next to nothing": {"type": "number", "multipleOf": 1e-300},
    "no choice": {"enum": []},
    "choices that are a text": {"enum": "abc"},
    "50,000 choices": {"enum": list(range(50_000))},
    "1,500 choices": {"enum": list(range(1500))},
    "required that is a text": {"type": "object", "required": "a"},
    "properties that are a list": {"properties": [1]},
    "a property that is a number": {"properties": {"a": 3}},
    "items that are a number": {"type": "array", "items": 3},
    "3,000 places": {"type": "array", "prefixItems": [{"type": "string"}] * 3000},
    "a million members": {"type": "object", "minProperties": 10**6},
    "half of 200 members": {"properties": {f"p{i}": {} for i in range(200)}, "minProperties": 100},
    "no alternatives": {"anyOf": []},
    "alternatives that are numbers": {"anyOf": [3]},
    "additional that is a text": {"additionalProperties": "yes"},
    "a product of unions": {"allOf": [{"anyOf": [{"minimum": i}, {"maximum": i}]} for i in range(20)]},
    "a format that is a number": {"type": "string", "format": 3},
}  # fmt: skip

TAKEN = {
    "anything": True,
    "a pattern that backtracks": {"type": "string", "pattern": "(a+)+$"},
    "a pattern in pieces": {"type": "string", "pattern": "(a|b|ab)*c" * 50},
    "no limit to speak of": {"type": "string", "maxLength": 10**12},
    "no end of items": {"type": "array", "maxItems": 10**18},
    "a long key": {"type": "object", "properties": {"k" * 10_000: {}}},
    "500 of anything": {"type": "object", "properties": {f"p{i}": {} for i in range(500)}},
    "80 unions": unions(80),
    "a name like a control token": {"properties": {"<|tool_call>": {}, '<|"|>': {"const": "<turn|>"}}},
    "a name like a grammar": {"properties": {'"\n%json {}\nstart: "': {"enum": ['" | /.*/ | "', "<[1]>"]}}},
    "200 ranges, 300 times": {"type": "string", "pattern": f"^([{RANGES}]?){{300}}$"},
    "1,000 letters that may be missing": {"type": "string", "pattern": "^(a?){1000}$", "maxLength": 3},
    "200 choices beside a pattern": {
        "enum": [f"a{i}" for i in range(200)],
        "pattern": f"^(a|[{RANGES}]?|[0-9]){{300}}$",
    },
    "one of 1,000 lists": {"oneOf": [{"enum": [f"v{i}"]} for i in range(1000)]},
    "repetitions in repetitions": repeated(28),
    "700 optional members": {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(700)}},
    "a name of brackets": {"type": "object", "properties": {"}]{[,:": {"type": "string"}}},
}  # fmt: skip


def bounded(work: Callable[[], object]) -> None:
    """Do something that is to take few steps, and little memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert lines(work) < LINES
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MEGABYTES


def test_there_are_enough():
    assert len(REFUSED) >= 60


@pytest.mark.long
@pytest.mark.parametrize("schema", REFUSED.values(), ids=REFUSED)
def test_refused(schema):
    def refused():
        with pytest.raises(SchemaError) as caught:
            json_grammar(schema)
        assert len(str(caught.value)) < 500

    bounded(refused)
    assert json_grammar({"type": "string"}).root is not None  # and the next one is made


@pytest.mark.parametrize("name", ["holds itself", "1,000 levels", "a bomb of members", "an open group"])
def test_refused_as_a_tool(name):
    parameters = {"type": "object", "properties": {"a": REFUSED[name]}}

    def refused():
        with pytest.raises(SchemaError, match="x: #"):
            grammar_for([Tool("x", "", parameters)], "auto", True, Gemma4Dialect())

    bounded(refused)


@pytest.mark.parametrize("schema", TAKEN.values(), ids=TAKEN)
def test_taken(schema):
    def taken():
        assert constraints().of(json_grammar(schema), frozenset(), forces=True) is not None

    bounded(taken)


DIALECTS = [None, GemmaDialect(), FunctionGemmaDialect(), Gemma4Dialect()]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name if dialect else "JSON")
def test_of_seven_hundred_optional_members_any_can_be_written(dialect):
    names = [f"p{number}" for number in range(700)]
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    tool = Tool("x", "", schema)
    grammar = json_grammar(schema) if dialect is None else grammar_for([tool], "any", False, dialect)
    rng = random.Random(1)
    for count in (0, 1, 3, 40):
        members = {name: rng.randint(0, 99) for name in sorted(rng.sample(names, count), key=names.index)}
        walk_through(grammar, dialect, members)


def walk_through(grammar: Grammar, dialect: Dialect | None, members: dict[str, int]) -> None:
    """See that the members can be written, a mask before each token."""
    rule = constraints().of(grammar, frozenset(), forces=False)
    if dialect is None:
        tokens = tokens_of(json.dumps(members))
    else:
        prompt = dialect.render([Message.user("Go"), Message.assistant(calls=[ToolCall("x", members)])])
        (place,) = prompt.written
        pieces = prompt.pieces[place.start : place.end]
        tokens = []
        for piece in pieces:
            tokens += [tokenizer().control_id(piece.text)] if piece.is_control else tokens_of(piece.text)
    for token in tokens:
        assert token in allowed(rule)
        assert rule.take(token)
    assert rule.complete


def go_some_steps(seed: int) -> None:
    """Make a hostile grammar, and go some steps in it."""
    rng = random.Random(seed)
    schema = hostile.schema(rng) if seed % 3 else {"type": "string", "pattern": hostile.pattern(rng)}
    try:
        if seed % 2:
            grammar = json_grammar(schema)
        else:
            grammar = grammar_for([Tool("x", "", {"properties": {"v": schema}})], "any", True, Gemma4Dialect())
        rule = constraints().of(grammar, frozenset(), forces=True)
    except SchemaError:
        return
    assert rule is not None
    for _ in range(12):
        if not all(map(rule.take, rule.forced())) or rule.finished:
            break
        rule.illegal = True  # so that there is a mask
        rule.prepare()
        if rule.cut_off:
            break
        choices = allowed(rule)
        assert rule.take(rng.choice(choices))


def all_are_bounded(seeds: Iterable[int]) -> None:
    for seed in seeds:
        bounded(partial(go_some_steps, seed))


@pytest.mark.long
def test_hostile_schemas_by_chance():
    all_are_bounded(range(60))
    all_are_bounded([314, 692, 3421, 4973])  # without a limit to what is joined, these take many, the last for ever
    all_are_bounded([527])  # one pattern in 600 alternatives, which are read once and again


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_of_five_thousand_nothing_is_left():
    all_are_bounded(range(100, 300))
    before = resident()
    all_are_bounded(range(300, 5100))
    assert resident() - before < MEGABYTES


def resident() -> float:
    """MiB that this process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
