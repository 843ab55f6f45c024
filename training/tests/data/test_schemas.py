"""What a model in training reads of a schema is what LangChain's users send."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from langchain_gemma_jax.chat.asking.schemas import json_schema
from training.data.schemas import of_a_class


class Address(BaseModel):
    street: str
    town: str


class Shop(BaseModel):
    """A shop."""

    owner: str = Field(description="Who it belongs to")
    open_on: list[str]
    size: Literal["small", "large"]
    mail: str | None = None
    rooms: int | None = Field(default=None, description="How many")
    at: Address


class Shops(BaseModel):
    shops: list[Address]


STRING = {"type": "string"}
ADDRESS = {"type": "object", "properties": {"street": STRING, "town": STRING}, "required": ["street", "town"]}
SHOP = {
    "type": "object",
    "properties": {
        "owner": {"type": "string", "description": "Who it belongs to"},
        "open_on": {"type": "array", "items": STRING},
        "size": {"type": "string", "enum": ["small", "large"]},
        "mail": {"type": "string", "nullable": True},
        "rooms": {"type": "integer", "nullable": True, "description": "How many"},
        "at": ADDRESS,
    },
    "required": ["owner", "open_on", "size", "at"],
}
SHOPS = {
    "type": "object",
    "properties": {"shops": {"type": "array", "items": ADDRESS}},
    "required": ["shops"],
}


def order(schema):
    """A schema with the order of its keys."""
    if isinstance(schema, dict):
        return [(key, order(value)) for key, value in schema.items()]
    return list(map(order, schema)) if isinstance(schema, list) else schema


@pytest.mark.parametrize(("cls", "schema", "told"), [(Shop, SHOP, "A shop."), (Shops, SHOPS, "")])
def test_it_is_to_the_letter_what_langchain_makes_of_the_class(cls, schema, told):
    assert order(of_a_class(schema, cls.__name__, told)) == order(json_schema(cls))


def test_what_is_no_object_has_no_class():
    with pytest.raises(TypeError, match="expected the properties of an object, found None"):
        of_a_class({"type": "object", "properties": None}, "Shop")
