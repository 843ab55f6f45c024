"""Whatever a grammar of a turn lets through, its calls are of declared tools, and valid."""

from __future__ import annotations

import json
import random

import pytest

from langchain_gemma_jax.dialects import TextDelta, ThoughtDelta, Tool, grammar_for
from langchain_gemma_jax.dialects.gemma import GemmaDialect
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError, SchemaError
from tests.dialects.calls_read import DIALECTS, calls, read
from tests.dialects.schemas import Schemas
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import check, walk

CHOICES = ["auto", "any", "required", "none", "get"]
GET = Tool("get", "", {"type": "object", "properties": {"b": {"type": "string"}, "A": {"type": "integer"}}})


def one(seed):
    rng = random.Random(seed)
    tools = [
        Tool(name, "", Schemas(rng).parameters()) for name in ("get", "get_more", "do it:now")[: rng.randint(1, 3)]
    ]
    dialect, choice, parallel = rng.choice(DIALECTS), rng.choice(CHOICES), rng.random() < 0.5
    thinks = dialect.thinks and choice not in {"auto", "none"}
    thoughts = rng.choice(["none", "may", "inside"]) if thinks else "none"
    try:
        grammar = grammar_for(tools, choice, parallel, dialect, thoughts=thoughts)
    except SchemaError as error:
        assert "no value fits" in error.problem  # noqa: PT017
        return 0
    if grammar.root is None:
        assert grammar.banned == (dialect.call_opener,)
        return 0
    ids = walk(grammar, rng, rng.randint(1, 150), hurry=rng.choice([0.05, 0.5]))
    found = calls(read(dialect, ids, in_thought=thoughts == "inside"))
    schemas = {tool.name: tool.parameters for tool in tools}
    for name, arguments in found:
        check(arguments, schemas[name])
    if choice == "none":
        assert found == []
    elif choice != "auto" or grammar.opener is not None:
        assert len(found) >= 1
    assert parallel or len(found) <= 1
    assert choice != "get" or {name for name, _ in found} == {"get"}
    return len(found)


@pytest.mark.parametrize("seeds", [range(first, first + 15) for first in range(0, 150, 15)], ids=str)
def test_calls_are_valid(seeds):
    assert sum(map(one, seeds)) > 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_calls_are_valid():
    assert sum(map(one, range(1000, 3000))) > 1000


def test_thoughts_come_before_calls_that_have_to_come():
    grammar, rng = grammar_for([GET], "any", False, Gemma4Dialect(), thoughts="may"), random.Random(1)
    seen = set()
    for _ in range(20):
        events = read(Gemma4Dialect(), walk(grammar, rng, 100, hurry=0.3))
        assert len(calls(events)) == 1
        seen.add(any(isinstance(event, ThoughtDelta) for event in events))
    assert seen == {True, False}


def test_with_an_answers_schema_a_turn_is_calls_or_json():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    grammar, rng = grammar_for([GET], "auto", True, Gemma4Dialect(), answer=schema), random.Random(2)
    kinds = set()
    for _ in range(20):
        events = read(Gemma4Dialect(), walk(grammar, rng, 80, hurry=0.4))
        texts = [event.text for event in events if isinstance(event, TextDelta)]
        kinds.add(bool(calls(events)))
        assert bool(calls(events)) != bool(texts)
        for text in texts:
            check(json.loads(text), schema)
    assert kinds == {True, False}
    only = grammar_for([GET], "none", True, Gemma4Dialect(), answer=schema)
    check(json.loads(tokenizer().decode(walk(only, rng, 80))), schema)


def test_a_tool_of_which_nothing_is_said_is_called_with_nothing():
    for parameters in ({}, {"type": "object"}, {"type": "object", "properties": {}}):
        ids = walk(grammar_for([Tool("now", "", parameters)], "any", False, Gemma4Dialect()), random.Random(3), 50)
        assert calls(read(Gemma4Dialect(), ids)) == [("now", {})]


def test_what_is_asked_for_has_to_be_possible():
    with pytest.raises(InputError, match="tool_choice"):
        grammar_for([GET], "other", True, Gemma4Dialect())
    with pytest.raises(InputError, match="tool_choice"):
        grammar_for([], "any", True, Gemma4Dialect())
    with pytest.raises(InputError, match="names that differ"):
        grammar_for([GET, GET], "any", True, Gemma4Dialect())
    with pytest.raises(InputError, match="chat format"):
        grammar_for([GET], "any", True)
    with pytest.raises(InputError, match="has none"):
        grammar_for([GET], "any", True, GemmaDialect(), thoughts="may")
    with pytest.raises(SchemaError, match="get: #/properties/a") as caught:
        grammar_for([Tool("get", "", {"properties": {"a": {"not": {}}}})], "auto", True, Gemma4Dialect())
    assert caught.value.problem.startswith("not")
    lenient = grammar_for(
        [Tool("get", "", {"properties": {"a": {"not": {}}}})], "auto", True, Gemma4Dialect(), lenient=True
    )
    assert lenient.unpromised[0].startswith("get: #/properties/a: not")


def test_without_tools_the_text_is_free():
    assert grammar_for([], "auto", True, Gemma4Dialect()).root is None
