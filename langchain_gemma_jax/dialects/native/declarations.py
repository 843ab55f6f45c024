"""Declarations of tools in native formats, exactly as the published templates print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_gemma_jax.dialects.conversation.messages import Tool, ToolResult
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter
from langchain_gemma_jax.dialects.native.declared_schema import lowered
from langchain_gemma_jax.dialects.native.notation import Notation, in_order
from langchain_gemma_jax.grammar.json_value import Json

_KEYWORDS = ("description", "type", "properties", "required", "nullable")


def declare(out: PromptWriter, notation: Notation, tool: Tool) -> None:
    """Write a tool's declaration.

    Raises:
        InputError: its schema cannot be declared.
    """
    out.control(notation.declaration[0])
    out.text(f"declaration:{tool.name}{{description:")
    notation.string(out, tool.description)
    schema = lowered(tool.parameters)
    if schema:
        out.text(",parameters:{")
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            out.text("properties:{")
            _properties(out, notation, properties, hidden=notation.hides_keywords)
            out.text("},")
        if required := _list(schema.get("required")):
            out.text("required:")
            notation.strings(out, required)
            out.text(",")
        _type(out, notation, schema)
        out.text("}")
    out.text("}")
    out.control(notation.declaration[1])


def respond(out: PromptWriter, notation: Notation, name: str, result: ToolResult) -> None:
    """Write a tool's result, and the declarations of the tools that it found."""
    notation.response_of(out, name, result.payload)
    for tool in result.declares:
        declare(out, notation, tool)


def _properties(out: PromptWriter, notation: Notation, table: Mapping[str, Json], *, hidden: bool) -> None:
    shown = [name for name in in_order(table) if not (hidden and name in _KEYWORDS)]
    for number, name in enumerate(shown):
        schema = table[name]
        out.text(f"{',' if number else ''}{name}:{{")
        _property(out, notation, schema if isinstance(schema, Mapping) else {})
        out.text("}")


def _property(out: PromptWriter, notation: Notation, schema: Mapping[str, Json]) -> None:
    kind = str(schema.get("type", "")).upper()
    description, enum, items = schema.get("description"), _list(schema.get("enum")), schema.get("items")
    if description or notation.shows_empty_descriptions:
        out.text("description:")
        notation.string(out, str(description or ""))
        out.text(",")
    if kind == "STRING" and enum:
        out.text("enum:")
        notation.value(out, enum, quoted_keys=True)
        out.text(",")
    if kind == "ARRAY" and isinstance(items, Mapping) and items:
        out.text("items:{")
        _items(out, notation, items)
        out.text("},")
    if schema.get("nullable") and notation.shows_nullable:
        out.text("nullable:true,")
    if kind == "OBJECT":
        properties = schema.get("properties")
        out.text("properties:{")
        if isinstance(properties, Mapping):
            _properties(out, notation, properties, hidden=notation.hides_keywords)
        else:  # if no members are named, the templates print the schema's other keywords here
            _properties(out, notation, schema, hidden=True)
        out.text("},")
        if required := _list(schema.get("required")):
            out.text("required:")
            notation.strings(out, required)
            out.text(",")
    _type(out, notation, schema)


def _items(out: PromptWriter, notation: Notation, schema: Mapping[str, Json]) -> None:
    shown = [keyword for keyword in in_order(schema) if schema[keyword] is not None]
    for number, keyword in enumerate(shown):
        value = schema[keyword]
        out.text(f"{',' if number else ''}{keyword}:")
        if keyword == "properties":
            out.text("{")
            if isinstance(value, Mapping):
                _properties(out, notation, value, hidden=notation.hides_keywords)
            out.text("}")
        elif keyword == "required":
            notation.strings(out, _list(value))
        elif keyword == "type":
            notation.string(out, str(value).upper())
        else:
            notation.value(out, value, quoted_keys=True)


def _type(out: PromptWriter, notation: Notation, schema: Mapping[str, Json]) -> None:
    out.text("type:")
    notation.string(out, str(schema.get("type", "")).upper())


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()
