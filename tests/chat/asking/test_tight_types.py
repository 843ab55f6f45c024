"""Whatever is made of a class's schema, the class takes: also where pydantic's own schema says less than that."""

from __future__ import annotations

import dataclasses
import datetime as dt
import ipaddress
import json
import random
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

import pytest
from langchain_core.tools import tool
from pydantic import AwareDatetime, BaseModel, Field, HttpUrl, NaiveDatetime, PostgresDsn, TypeAdapter, create_model

from langchain_gemma_jax.chat.asking.schemas import json_schema
from langchain_gemma_jax.chat.asking.tool_choice import openai_tools
from langchain_gemma_jax.dialects import json_grammar
from tests.dialects.vocabulary import tokenizer
from tests.dialects.walks import takes, walk

TIGHT: dict[str, Any] = {
    "decimal": Decimal,
    "optional": Decimal | None,
    "bounded": Annotated[Decimal, Field(ge=0, lt=100)],
    "of digits": Annotated[Decimal, Field(max_digits=5, decimal_places=2)],
    "of digits alone": Annotated[Decimal, Field(max_digits=4, gt=0)],
    "of places": Annotated[Decimal, Field(decimal_places=1, le=10)],
    "multiple": Annotated[Decimal, Field(multiple_of=Decimal("0.25"))],
    "list": list[Decimal],
    "by name": dict[str, Decimal],
    "fraction": Fraction,
    "complex": complex,
    "naive": NaiveDatetime,
    "aware": AwareDatetime,
    "network": ipaddress.IPv4Network,
    "interface": ipaddress.IPv6Interface,
    "http": HttpUrl,
    "database": PostgresDsn,
    "date": dt.date,
}


def made(schema: Any, count: int, seed: int) -> list[str]:
    """Values that fit, as a model without any sense makes them."""
    grammar, rng = json_grammar(schema), random.Random(seed)
    return [tokenizer().decode(walk(grammar, rng, 40), keep_control=False) for _ in range(count)]


@pytest.mark.parametrize("name", TIGHT)
def test_what_fits_the_schema_is_taken_by_the_type(name):
    model = create_model("Made", value=(TIGHT[name], ...))
    texts = made(json_schema(model), 25, seed=1)
    for text in texts:
        model.model_validate(json.loads(text))
    assert len(set(texts)) > 5


def test_years_is_no_decimal_and_what_is_one_can_still_be_written():
    class Age(BaseModel):
        age: Decimal

    grammar = json_grammar(json_schema(Age))
    assert not takes(grammar, '{"age": "years"}')
    assert not takes(grammar, '{"age": "12,5"}')
    for text in ('{"age": "12.50"}', '{"age": -3}', '{"age": 0.1}', '{"age": "-0"}'):
        assert takes(grammar, text)
        Age.model_validate_json(text)


class Price(BaseModel):
    """A price."""

    amount: Annotated[Decimal, Field(description="In euros.", decimal_places=2)]


class Order(BaseModel):
    """What is ordered."""

    prices: list[Price]
    total: Decimal = Decimal(0)


@dataclasses.dataclass
class Bill:
    """A bill."""

    total: Decimal


@tool
def pay(amount: Decimal, to: str) -> str:
    """Pay somebody."""
    return f"{amount} to {to}"


def refund(amount: Decimal) -> str:
    """Give money back.

    Args:
        amount: How much.
    """
    return str(amount)


def test_classes_inside_classes_dataclasses_tools_and_functions_are_told_apart_from_texts():
    for schema in (Order, Bill):
        for text in made(json_schema(schema), 10, seed=2):
            TypeAdapter(schema).validate_python(json.loads(text))
    assert json_schema(Order)["title"] == "Order"
    assert json_schema(Order)["description"] == "What is ordered."
    for given, name, words in ((pay, "pay", {}), (refund, "refund", {"description": "How much."})):
        (form,) = openai_tools([given])
        (strict,) = openai_tools([given], strict=True)
        for each in (form, strict):
            function = each["function"]
            assert function["name"] == name
            assert function["parameters"]["required"][0] == "amount"
            assert function["parameters"]["properties"]["amount"] == {
                "anyOf": [{"type": "number"}, {"type": "string", "format": "decimal"}], **words
            }  # fmt: skip
    (form,) = openai_tools([Order])
    assert form["function"]["parameters"]["properties"]["prices"]["items"]["properties"]["amount"]["type"] == "number"
