"""Limits to what one schema may take, where no other limit comes first. What schemas mean: the files beside this."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.schema import json_schema


def listed(count):
    """A schema of so many members."""
    return {"type": "object", "properties": {f"member_{number}": {"type": "string"} for number in range(count)}}


def test_a_schema_is_so_much_work_and_no_more_whatever_it_asks():
    numbers = [{"enum": list(range(first, first + 1000))} for first in range(17)]
    steps = {
        "values": numbers,
        "patterns": [{"pattern": f"^a{number}[a-z]*$"} for number in range(200)],
        "multiples": [{"type": "integer", "multipleOf": 100 + number} for number in range(200)],
        "texts": [{"enum": [f"a{n}" for n in range(500)], "pattern": f"^a{one}?[0-9]*$"} for one in range(30)],
    }
    # About a tenth of a second of one processor each, and the same on every one.
    for (name, members), most in zip(steps.items(), (6, 92, 49, 8), strict=True):
        properties = {f"p{number}": one for number, one in enumerate(members)}
        with pytest.raises(SchemaError, match=f"#/properties/p{most}: it is too large: up to here") as caught:
            json_grammar({"type": "object", "properties": properties})
        assert caught.value.at == f"#/properties/p{most}", name


def test_parts_are_counted_once_references_are_followed(monkeypatch):
    monkeypatch.setattr(json_schema, "WORK", 100 * json_schema.OF_A_PART)
    assert json_grammar(listed(20)).root is not None
    with pytest.raises(SchemaError, match="too many parts, once its references are followed"):
        json_grammar(listed(90))


def test_what_is_too_much_is_refused_before_it_is_done(monkeypatch):
    made = []
    monkeypatch.setattr(json_schema, "Reading", made.append)
    monkeypatch.setattr(json_schema, "WORK", 10 * json_schema.OF_A_READING)
    with pytest.raises(SchemaError, match="too large"):
        json_grammar({"properties": {f"p{number}": {"pattern": f"^{number}*$"} for number in range(20)}})
    assert len(made) == 9


def test_members_that_need_names_of_their_own_are_said_to_be_why():
    for schema, at in (
        ({"type": "object", "minProperties": 2}, "#"),
        ({"type": "object", "propertyNames": {"pattern": "^a"}, "minProperties": 3}, "#"),
        ({"properties": {"a": {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 2}}},
         "#/properties/a"),
    ):  # fmt: skip
        with pytest.raises(SchemaError, match="two names that it leaves open may come out the same") as caught:
            json_grammar(schema)
        assert caught.value.at == at
        found = json_grammar(schema, lenient=True)
        assert [each.partition(":")[0] for each in found.unpromised] == [at]
    # With those that are declared there are enough; or there can be none.
    named = {"properties": {"a": {}}, "required": ["a"], "additionalProperties": {"type": "null"}}
    assert json_grammar(named | {"minProperties": 2}).unpromised == ()
    assert json_grammar({"propertyNames": {"enum": ["a", "b"]}, "minProperties": 2}).unpromised == ()
    with pytest.raises(SchemaError, match="no value fits it"):
        json_grammar({"properties": {"a": {}}, "additionalProperties": False, "minProperties": 2})
    with pytest.raises(SchemaError, match="no value fits it"):
        json_grammar({"type": "object", "minProperties": 3, "maxProperties": 2})
