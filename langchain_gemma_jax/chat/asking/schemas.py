"""Schemas in all the forms that LangChain's users have, as JSON schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeAlias, cast, get_origin

from langchain_core.utils.function_calling import convert_to_json_schema
from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

from langchain_gemma_jax.chat.asking.tight_types import TightJsonSchema, standing_for, tight_schema
from langchain_gemma_jax.dialects import Json
from langchain_gemma_jax.errors import InputError

SchemaLike: TypeAlias = Any  # classes of pydantic (2 and 1), TypedDict, dataclasses, functions, and dicts of many forms
Schema: TypeAlias = Mapping[str, Json]

_OF_A_SCHEMA = {"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items"}


def json_schema(schema: SchemaLike) -> Schema:
    """Return the JSON schema of a class, a function, or a dictionary of any known form.

    Raises:
        InputError: nothing of a known form was given.
    """
    if (full := recursive_schema(schema)) is not None:
        return full
    if is_type_form(schema):
        return _of_type_form(schema)
    if isinstance(schema, type) and issubclass(schema, Enum):
        return _of_enum(schema)
    if isinstance(schema, type) and (tight := tight_schema(schema)) is not None:
        if not issubclass(schema, BaseModel):
            return {"title": schema.__name__} | tight
        schema = standing_for(schema, tight)
    if isinstance(schema, Mapping):
        schema = _unwrapped(schema)
        if "function" not in schema and _OF_A_SCHEMA & set(schema):
            return cast("Schema", schema)
    try:
        return cast("Schema", convert_to_json_schema(cast("Any", schema)))
    except (TypeError, ValueError, KeyError) as error:
        if (found := schema_by_pydantic(schema)) is not None:
            return found
        raise InputError(
            "schema: expected a class of pydantic, a TypedDict, a dataclass or a JSON schema; found "
            f"{schema!r:.200}. {error}"
        ) from error


def is_type_form(schema: SchemaLike) -> bool:
    """Return True for a type that is made of others: ``Union[A, B]``, ``A | None``, ``list[A]``, ``Literal["a"]``."""
    return get_origin(schema) is not None


def _of_type_form(schema: SchemaLike) -> Schema:
    try:
        return {"title": "answer"} | TypeAdapter(schema).json_schema(schema_generator=TightJsonSchema)
    except (PydanticUserError, PydanticSchemaGenerationError) as error:
        raise InputError(f"schema: {schema!r:.200} is no type that JSON can have. {error}") from error


def _of_enum(schema: type[Enum]) -> Schema:
    """Return the schema of an enum's values."""
    values = [member.value for member in schema]
    if not values or not all(isinstance(value, str | int | float | bool | None) for value in values):
        shown = f"{values!r:.100}" if values else "none"
        raise InputError(
            f"schema: expected an Enum whose values are strings or numbers; those of {schema!r} are {shown}."
        )
    return {"title": schema.__name__, "enum": cast("list[Json]", values)}


def recursive_schema(schema: SchemaLike) -> Schema | None:
    """Return the schema of a pydantic class that refers to itself, where LangChain's conversion ends; or None."""
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return None
    found = schema.model_json_schema(schema_generator=TightJsonSchema)
    definitions = found.get("$defs", {})
    if not any(_leads_to(name, name, definitions) for name in definitions):
        return None
    return {"title": schema.__name__} | found


def _leads_to(start: str, target: str, definitions: Mapping[str, Any]) -> bool:
    seen, waiting = set[str](), [start]
    while waiting:
        for name in _references(definitions.get(waiting.pop())):
            if name == target:
                return True
            if name not in seen:
                seen.add(name)
                waiting.append(name)
    return False


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(to := value.get("$ref"), str):
            yield to.removeprefix("#/$defs/")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)


def _unwrapped(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what OpenAI's envelopes hold: ``{"type": "json_schema", "json_schema": {"name": …, "schema": …}}``."""
    if isinstance(inner := schema.get("json_schema"), Mapping):
        schema = inner
    if isinstance(inner := schema.get("schema"), Mapping):
        return {"title": schema["name"]} | dict(inner) if isinstance(schema.get("name"), str) else inner
    return schema


def schema_by_pydantic(schema: SchemaLike) -> Schema | None:
    """Return the JSON schema that pydantic makes of a class, for those that LangChain fails to convert; or None.

    Such a class is one with ``NotRequired`` in quoted annotations.
    """
    if not isinstance(schema, type):
        return None
    try:
        return {"title": schema.__name__} | TypeAdapter(schema).json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError):
        return None
