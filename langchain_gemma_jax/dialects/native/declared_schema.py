"""JSON schemas, reduced to the small language of native declarations.

The published templates show a property's description, type, string choices, items, members, and whether it may be null.
They print everything else wrongly or not at all: ``anyOf`` has no type, a list of types is printed as Python's repr, a
reference is not followed. So schemas are first reduced to that language. A schema that is in it already does not
change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json

DeclaredSchema: TypeAlias = dict[str, Json]

MAX_NODES = 10_000  # after references are followed: a few lines of references can expand to billions of nodes
MAX_LEVELS = 64

_ABOUT_THE_SCHEMA = frozenset({"title", "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$ref"})
_ALTERNATIVES = ("anyOf", "oneOf")
_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}


def lowered(schema: Mapping[str, Json]) -> DeclaredSchema:
    """Return the schema of a tool's parameters in the language of declarations. An empty schema stays empty.

    Raises:
        InputError: a reference that leads nowhere, or a schema that is too large or too deep.
    """
    if not schema:
        return {}
    return {"type": "object"} | _Lowering(schema).node(schema, ())


class _Lowering:
    def __init__(self, root: Mapping[str, Json]) -> None:
        self._root = root
        self._nodes = 0

    def node(self, schema: Json, inside: tuple[str, ...], level: int = 0) -> DeclaredSchema:
        """Return one schema, lowered. ``inside``: the references that led to it."""
        self._nodes += 1
        if self._nodes > MAX_NODES or level > MAX_LEVELS:
            raise InputError(
                f"A tool's schema: expected at most {MAX_NODES:,} parts and {MAX_LEVELS} levels once its references "
                "are followed, found more."
            )
        if not isinstance(schema, Mapping):  # true and false are schemas too, with nothing to declare
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._referred(schema, reference, inside, level)
        for name in ("allOf", *_ALTERNATIVES):
            options = schema.get(name)
            if isinstance(options, Sequence) and not isinstance(options, str) and options:
                rest = {key: value for key, value in schema.items() if key != name}
                parts = [self.node(option, inside, level + 1) for option in options]
                both = [self.node(rest, inside, level + 1), _all_of(parts) if name == "allOf" else _any_of(parts)]
                return _all_of([both[1], both[0]])
        return self._plain(schema, inside, level)

    def _referred(
        self, schema: Mapping[str, Json], reference: str, inside: tuple[str, ...], level: int
    ) -> DeclaredSchema:
        target = self._find(reference)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if reference in inside:  # a recursive type, such as a tree: the first level has shown its members
            shown = {key: target[key] for key in ("type", "description") if key in target}
            return _all_of([self.node(shown, inside, level + 1), self.node(rest, inside, level + 1)])
        return _all_of([self.node(target, (*inside, reference), level + 1), self.node(rest, inside, level + 1)])

    def _find(self, reference: str) -> Mapping[str, Json]:
        at: Json = self._root
        if reference.partition("#")[0] == "":
            for step in reference.removeprefix("#").split("/")[1:]:
                name = step.replace("~1", "/").replace("~0", "~")
                at = at.get(name) if isinstance(at, Mapping) else None
            if isinstance(at, Mapping):
                return at
        raise InputError(
            f"A tool's schema refers to {reference!r}, which is not in it. References begin with '#/', as in "
            "'#/$defs/Address'."
        )

    def _plain(self, schema: Mapping[str, Json], inside: tuple[str, ...], level: int) -> DeclaredSchema:
        plain: DeclaredSchema = {key: value for key, value in schema.items() if key not in _ABOUT_THE_SCHEMA}
        if "const" in plain:
            plain.setdefault("enum", [plain.pop("const")])
        _one_type(plain)
        for name in ("items", "additionalProperties"):
            if isinstance(plain.get(name), bool):  # printed, it would look like a property without a type
                del plain[name]
            elif name in plain:
                plain[name] = self.node(plain[name], inside, level + 1)
        several = plain.pop("prefixItems", None)
        if isinstance(several, Sequence) and not isinstance(several, str) and "items" not in plain:
            plain["items"] = _any_of([self.node(item, inside, level + 1) for item in several])
        properties = plain.get("properties")
        if isinstance(properties, Mapping):
            plain["properties"] = {key: self.node(value, inside, level + 1) for key, value in properties.items()}
        return plain


def _one_type(schema: DeclaredSchema) -> None:
    """Reduce a schema's types to one string, with null as a separate ``nullable``."""
    enum, kinds = schema.get("enum"), schema.get("type")
    if kinds is None and isinstance(enum, list):
        kinds = list(dict.fromkeys(_TYPES.get(type(choice), "null") for choice in enum))
    if isinstance(enum, list) and None in enum and len(enum) > 1:
        schema["enum"] = [choice for choice in enum if choice is not None]
        schema["nullable"] = True
    if kinds is None:
        kinds = "object" if "properties" in schema else "array" if "items" in schema else None
    if isinstance(kinds, list):
        named = [str(kind) for kind in kinds if kind != "null"]
        if len(named) < len(kinds) and named:
            schema["nullable"] = True
        kinds = "|".join(named) or "null"
    if kinds is not None:
        schema["type"] = kinds


def _any_of(options: Sequence[DeclaredSchema]) -> DeclaredSchema:
    """Return one schema for a value that fits at least one of several schemas."""
    named = [option for option in options if option.get("type") != "null"]
    if not named:
        return {"type": "null"}
    merged = dict(named[0])
    for option in named[1:]:
        merged = _either(merged, option)
    if len(named) < len(options):
        merged["nullable"] = True
    return merged


def _either(first: DeclaredSchema, second: DeclaredSchema) -> DeclaredSchema:
    kinds = [str(each.get("type", "")) for each in (first, second)]
    both: DeclaredSchema = {
        "type": "|".join(dict.fromkeys(kind for whole in kinds for kind in whole.split("|") if kind))
    }
    if first.get("nullable") or second.get("nullable"):
        both["nullable"] = True
    if "description" in first and first.get("description") == second.get("description"):
        both["description"] = first["description"]
    if kinds[0] != kinds[1]:
        return both
    if isinstance(first.get("enum"), list) and isinstance(second.get("enum"), list):
        choices = [*cast("list[Json]", first["enum"]), *cast("list[Json]", second["enum"])]
        both["enum"] = [choice for number, choice in enumerate(choices) if choice not in choices[:number]]
    if "items" in first and "items" in second:
        both["items"] = _either(cast("DeclaredSchema", first["items"]), cast("DeclaredSchema", second["items"]))
    if "properties" in first or "properties" in second:
        members = [cast("DeclaredSchema", each.get("properties", {})) for each in (first, second)]
        both["properties"] = members[1] | members[0]
        always = [name for name in _required(first) if name in _required(second)]
        if always:
            both["required"] = always
    return both


def _all_of(parts: Sequence[DeclaredSchema]) -> DeclaredSchema:
    """Return one schema for a value that fits all of several schemas. Of equal keywords, the last one counts."""
    merged: DeclaredSchema = {}
    for part in parts:
        properties = {
            **cast("DeclaredSchema", merged.get("properties", {})),
            **cast("DeclaredSchema", part.get("properties", {})),
        }
        required: list[Json] = list(dict.fromkeys([*_required(merged), *_required(part)]))
        merged |= part
        if properties:
            merged["properties"] = properties
        if required:
            merged["required"] = required
    return merged


def _required(schema: DeclaredSchema) -> list[str]:
    names = schema.get("required")
    return [str(name) for name in names] if isinstance(names, list | tuple) else []
