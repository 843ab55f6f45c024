"""Classes as JSON Schemas."""

from __future__ import annotations

import datetime as dt
import enum

import pytest
from pydantic import BaseModel

from langchain_gemma_jax import InputError
from langchain_gemma_jax.chat.asking.schemas import json_schema
from langchain_gemma_jax.chat.asking.tight_types import tight_schema


class Mood(enum.Enum):
    GLAD = "glad"
    ANGRY = 'angry "!"'
    NUMBER = 3


class Step(enum.IntEnum):
    UP = 1
    DOWN = 2


def test_an_enum_gives_its_member(whole_of):
    for kind in (Mood, Step):
        seen = set()
        for seed in range(6):
            asked = whole_of(temperature=50.0, seed=seed).with_structured_output(kind)
            seen.add(asked.invoke("HELLO"))
            *_, last = asked.stream("HELLO")
            assert last == asked.invoke("HELLO")
        assert all(isinstance(each, kind) for each in seen)
        assert len(seen) > 1
    found = whole_of().with_structured_output(Mood, method="json_mode", include_raw=True).invoke("HELLO")
    assert isinstance(found["parsed"], Mood)


def test_an_enum_that_cannot_be_an_answer_is_refused_with_the_way_that_can(scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match=r"found <enum 'Mood'>, whose values are none. .*method=\"json_schema\" gives"):
        model.with_structured_output(Mood, method="function_calling")
    with pytest.raises(InputError, match=r"tools\[0\]: .*Give it to a parameter of a function"):
        model.bind_tools([Mood])
    for wrong, says in (
        (enum.Enum("Pair", {"A": (1, 2)}), r"strings or numbers; those of <enum 'Pair'> are \[\(1, 2\)\]"),
        (enum.Enum("Nothing", {}), "are none"),
    ):
        with pytest.raises(InputError, match=says):
            model.with_structured_output(wrong)


def test_schemas_of_other_types_are_langchains_own():
    class Plain(BaseModel):
        """Nothing special."""

        name: str
        size: float | str
        at: dt.datetime

    assert tight_schema(Plain) is None
    assert json_schema(Plain)["properties"]["size"] == {"anyOf": [{"type": "number"}, {"type": "string"}]}
    assert tight_schema(lambda size, *rest: size) is None
    assert tight_schema({"type": "object"}) is None
    assert tight_schema(3) is None
