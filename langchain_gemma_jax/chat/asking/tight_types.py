"""Types of which pydantic's JSON schema says less than they take: a text for a ``Decimal``, any zone for a naive time.

Whatever fits the schema is to be taken by the type. So those types are described more narrowly here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

MOST_SCHEMES = 2  # of those that a database's address may have: a grammar joins them with all that an address may be
MOST_DIGITS = 6  # of a decimal with counted digits: each makes another way to write it

Described = dict[str, Any]
Describes = Callable[..., Described]


class TightJsonSchema(GenerateJsonSchema):
    """pydantic's own maker of JSON schemas, with narrower ones where its own let through what the type refuses."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """Return numbers with the digits asked for, and their text if neither digits nor bounds are asked for."""
        number = super().decimal_schema(cast("core_schema.DecimalSchema", {**schema, "allow_inf_nan": False}))
        options = number.get("anyOf")
        if not isinstance(options, list):  # as it is written, which is not what is asked of a model
            return number
        plain = {name: value for name, value in options[0].items() if value is not None}
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        if places is not None or digits is not None:
            return _counted(plain, places, digits)
        if len(plain) > 1:  # bounds, which no pattern has
            return plain
        return {"anyOf": [plain, {"type": "string", "format": "decimal"}]}

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """Return times without a zone, where that is what the type wants."""
        found = super().datetime_schema(schema)
        return {**found, "format": "local-date-time"} if schema.get("tz_constraint") == "naive" else found

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        """Return addresses of the schemes that the type takes."""
        return _of_schemes(super().url_schema(schema), schema.get("allowed_schemes"))

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> JsonSchemaValue:
        """Return addresses of one host, of the schemes that the type takes."""
        return _of_schemes(super().multi_host_url_schema(schema), schema.get("allowed_schemes"))

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        """Return texts of complex numbers."""
        return {**super().complex_schema(schema), "format": "complex"}


def _of_schemes(address: Described, schemes: list[str] | None) -> Described:
    some = "|".join(map(re.escape, (schemes or ())[:MOST_SCHEMES]))
    return address | {"format": "uri"} | ({"pattern": f"^(?:{some})://"} if some else {})


def _counted(number: Described, places: int | None, digits: int | None) -> Described:
    """Return numbers with at most ``digits`` digits: for each count after the point, the rest before it."""
    if digits is None:
        return _multiples(number, 10**9, min(places or 0, MOST_DIGITS))
    most = min(digits if places is None else places, digits, MOST_DIGITS)
    counts = [most] if places is not None else range(most + 1)
    found = [_multiples(number, 10 ** min(digits - count, 9), count) for count in counts]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _multiples(number: Described, beyond: int, places: int) -> Described:
    """Return ``number`` for values nearer to zero than ``beyond``, with ``places`` digits after the point."""
    inside = {"exclusiveMinimum": -beyond, "exclusiveMaximum": beyond, "multipleOf": 10**-places}
    return {"type": "number", "allOf": [{**inside, "type": "number"}, number]}


def tight_schema(schema: object) -> Described | None:
    """Return the JSON schema of a class, a dataclass or a function, if it differs from pydantic's own; else None."""
    describes = _describer(schema)
    if describes is None:
        return None
    try:
        found = describes(schema_generator=TightJsonSchema)
        return None if found == describes() else found
    except (PydanticUserError, PydanticSchemaGenerationError):
        return None


def standing_for(schema: type, described: Described) -> type[BaseModel]:
    """Return a class with the name of ``schema`` and the schema ``described``: LangChain converts classes alone."""
    members = {"__doc__": schema.__doc__, "model_json_schema": classmethod(lambda *_, **__: dict(described))}
    return type(schema.__name__, (BaseModel,), members)


def with_tight_members(parameters: Mapping[str, Any], described: Described) -> Described:
    """Return a tool's parameters with the narrower schemas of ``described``. Descriptions and defaults stay."""
    properties = dict(parameters.get("properties") or {})
    for name, tight in described.get("properties", {}).items():
        if name in properties and "$ref" not in repr(tight):
            kept = {word: properties[name][word] for word in ("description", "default") if word in properties[name]}
            asked = {word: value for word, value in tight.items() if word not in ("title", "description", "default")}
            properties[name] = {**asked, **kept}
    return {**parameters, "properties": properties}


def _describer(schema: object) -> Describes | None:
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema
    if not callable(schema):
        return None
    try:
        return TypeAdapter(cast("Any", schema)).json_schema
    except Exception:  # noqa: BLE001  annotations run users' code; LangChain says what is wrong
        return None
