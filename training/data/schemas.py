"""JSON schemas as LangChain makes them of pydantic classes."""

from __future__ import annotations

from training.data.conversation import Json

_ASIDE = {"nullable", "description"}


def of_a_class(schema: dict[str, Json], title: str, description: str = "") -> dict[str, Json]:
    """The schema of an object, as if a class with this name and docstring had been written for it.

    >>> of_a_class({"type": "object", "properties": {"to": {"type": "string", "nullable": True}}}, "Mail")["properties"]
    {'to': {'anyOf': [{'type': 'string'}, {'type': 'null'}], 'default': None}}
    """
    named: dict[str, Json] = {"title": title, "description": description}
    return named | _object(schema)


def _object(schema: dict[str, Json]) -> dict[str, Json]:
    inner = schema["properties"]
    if not isinstance(inner, dict):
        raise TypeError(f"expected the properties of an object, found {inner!r}")
    made: dict[str, Json] = {"properties": {name: _property(each) for name, each in inner.items()}}
    if required := schema.get("required"):
        made["required"] = required
    return made | {"type": "object"}


def _property(schema: Json) -> dict[str, Json]:
    if not isinstance(schema, dict):
        raise TypeError(f"expected a property's schema, found {schema!r}")
    described: dict[str, Json] = {"description": schema["description"]} if schema.get("description") else {}
    kept: dict[str, Json] = {key: schema[key] for key in sorted(schema) if key not in _ASIDE}
    if "items" in kept:
        kept["items"] = _property(kept["items"])
    inner = _object(schema) if schema["type"] == "object" else kept
    if schema.get("nullable"):
        either: dict[str, Json] = {"anyOf": [inner, {"type": "null"}], "default": None}
        return either | described
    return described | inner
