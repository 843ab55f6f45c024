"""Classes as JSON Schemas."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Annotated, Literal, Optional, Union

import pytest
from pydantic import BaseModel, Field

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


class Glad(BaseModel):
    """Somebody glad."""

    smiles: int


class Angry(BaseModel):
    """Somebody angry."""

    shouts: bool


def test_types_made_of_others_give_their_values(whole_of):
    of_all: dict[object, tuple[type, ...]] = {
        Union[Glad, Angry]: (Glad, Angry),  # noqa: UP007  as people write it, too
        Glad | Angry | None: (Glad, Angry, type(None)),
        Literal["yes", "no"]: (str,),
        Annotated[list[Glad], Field(min_length=1, max_length=2)]: (list,),
        Optional[Mood]: (Mood, type(None)),  # noqa: UP045
        dict[Literal["a", "b"], int]: (dict,),
        tuple[Mood, bool]: (tuple,),
    }
    for kind, expected in of_all.items():
        asked = whole_of(temperature=50.0, seed=3, max_tokens=300).with_structured_output(kind, include_raw=True)
        found = asked.invoke("HELLO")
        assert found["parsing_error"] is None, kind
        assert isinstance(found["parsed"], expected), kind
        if isinstance(found["parsed"], list):
            assert {type(each) for each in found["parsed"]} == {Glad}
    seen = {
        type(whole_of(temperature=50.0, seed=seed).with_structured_output(Glad | Angry).invoke("HELLO"))
        for seed in range(8)
    }
    assert seen == {Glad, Angry}
    *_, last = whole_of(seed=3).with_structured_output(Literal["yes", "no"]).stream("HELLO")
    assert last in {"yes", "no"}


def test_a_call_has_an_object_of_one_class(scripted):
    model, _ = scripted()
    for kind in (Glad | Angry, list[Glad], Literal["yes"]):
        with pytest.raises(InputError, match=r"a call has an object of one class.*bind_tools\(\[A, B\]\)"):
            model.with_structured_output(kind, method="function_calling")
    with pytest.raises(InputError, match="is no type that JSON can have"):
        model.with_structured_output(list[object.__new__])


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
