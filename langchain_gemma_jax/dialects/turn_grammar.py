"""Grammars for answers: JSON of a schema, or a turn that calls tools."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Literal as OneOf

from langchain_gemma_jax.dialects.conversation.messages import Tool
from langchain_gemma_jax.dialects.dialect import Dialect
from langchain_gemma_jax.errors import InputError, SchemaError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.grammar.nodes import (
    NOTHING,
    Control,
    Grammar,
    Literal,
    Node,
    Unopened,
    either,
    maybe,
    sequence,
)
from langchain_gemma_jax.grammar.schema.json_schema import SchemaReader
from langchain_gemma_jax.grammar.schema.writing import JsonWriting, Writing
from langchain_gemma_jax.grammar.terminals import words
from langchain_gemma_jax.stopping import looking

MAX_DEPTH = 200  # of a schema, as JSON
MAX_VALUES = 20_000  # of a schema
MAX_CHARACTERS = 1_000_000  # of a schema
LONGEST = 20_000  # characters that the shortest answer may have: a model that must write more never ends

_MEMBERS = ("properties", "additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf")

Thoughts = OneOf["none", "may", "inside"]
"""The place of thoughts in an answer: it has none, may begin with one ("may"), or continues the prompt's ("inside")."""


def json_grammar(
    schema: Mapping[str, Json] | bool,  # noqa: FBT001  true and false are schemas
    *,
    dialect: Dialect | None = None,
    thoughts: Thoughts = "none",
    lenient: bool = False,
) -> Grammar:
    """Return a grammar that restricts an answer to JSON that is valid against a schema.

    Args:
        schema: a JSON schema, of any draft from 4 on.
        dialect: the chat format, if there are thoughts.
        thoughts: "may": a thought may come before the JSON. "inside": the prompt ends in a thought.
        lenient: leave out what cannot be promised and name it in ``unpromised``, instead of raising an error.

    Raises:
        SchemaError: it is malformed or too large, no value fits it, or it asks for what a grammar cannot promise.
    """
    text = _checked(schema)
    return _json_grammar(text, dialect, thoughts, lenient)


def grammar_for(
    tools: Sequence[Tool],
    tool_choice: str = "auto",
    parallel: bool = True,  # noqa: FBT001, FBT002  the third argument of bind_tools
    dialect: Dialect | None = None,
    *,
    answer: Mapping[str, Json] | None = None,
    thoughts: Thoughts = "none",
    lenient: bool = False,
) -> Grammar:
    """Return a grammar that restricts a turn to calls of these tools, with arguments that fit their schemas.

    Args:
        tools: the tools that the prompt declares.
        tool_choice: "auto": the answer is free, except for the text after a call's opener; "any" or "required": the
            answer is a call; a tool's name: a call of that tool; "none": no call.
        parallel: allow several calls, one after the other.
        dialect: the chat format.
        answer: with "auto", restrict an answer that is no call to JSON of this schema. ``thoughts`` applies then, too.
        thoughts: with required calls, "may" allows a thought before them; "inside" means that the prompt has begun one.
        lenient: leave out what cannot be promised and name it in ``unpromised``, instead of raising an error.

    Raises:
        SchemaError: a tool's parameters are malformed or too large, or ask for what a grammar cannot promise.
        InputError: there is no such tool, or its name cannot be written in this format.
    """
    if dialect is None:
        raise InputError("grammar_for: expected a chat format, found None. dialect_for(...) gives a model's.")
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        raise InputError(f"tools: expected names that differ, found {', '.join(names)}.")
    chosen = (
        tools if tool_choice in {"auto", "any", "required", "none"} else [t for t in tools if t.name == tool_choice]
    )
    if not chosen and tool_choice not in {"auto", "none"}:
        raise InputError(f"tool_choice: expected auto, any, required, none or one of {names}, found {tool_choice!r}.")
    described = tuple((tool.name, _of_tool(tool)) for tool in chosen)
    kind = tool_choice if tool_choice in {"auto", "none"} else "required"
    wanted = None if answer is None else _checked(answer)
    return _turn_grammar(described, kind, parallel, dialect, wanted, thoughts, lenient)


def _json_grammar(schema: str, dialect: Dialect | None, thoughts: Thoughts, lenient: bool) -> Grammar:  # noqa: FBT001
    rules: dict[str, Node] = {}
    reader = _reader(schema, rules, JsonWriting(), "j", lenient=lenient)
    root = sequence(_thought(dialect, thoughts), _whole(reader))
    key = _key("json", schema, dialect, thoughts, lenient)
    return _sound(Grammar(key, root, rules, unpromised=tuple(reader.unpromised)))


def _turn_grammar(
    tools: tuple[tuple[str, str], ...],
    kind: str,
    parallel: bool,  # noqa: FBT001
    dialect: Dialect,
    answer: str | None,
    thoughts: Thoughts,
    lenient: bool,  # noqa: FBT001
) -> Grammar:
    key = _key(
        "turn", *(part for tool in tools for part in tool), kind, parallel, repr(dialect), answer, thoughts, lenient
    )
    shape = dialect.calls
    if kind == "none" or not tools:
        if answer is not None:
            return _json_grammar(answer, dialect, thoughts, lenient)
        return Grammar(key, shape.free, {}, free_until=shape.opening_line, banned=shape.banned)
    rules: dict[str, Node] = {}
    unpromised: dict[str, None] = {}
    calls: list[Node] = []
    for number, (name, parameters) in enumerate(looking(tools, 1)):
        shape.check_name(name)
        reader = _reader(parameters, rules, shape.writing, f"t{number}_", lenient=lenient)
        try:
            arguments = _arguments(reader)
        except SchemaError as error:
            raise SchemaError(f"{name}: {error.at}", error.problem) from error
        calls.append(shape.call(name, reader.rule(arguments)))
        unpromised |= {f"{name}: {what}": None for what in reader.unpromised}
    turn = shape.turn(either(*calls), parallel=parallel)
    opener = free_until = unopened = None
    if kind == "required":
        root = sequence(_thought(dialect, thoughts), turn.whole)
    elif answer is not None:
        reader = _reader(answer, rules, JsonWriting(), "j", lenient=lenient)
        root = sequence(_thought(dialect, thoughts), either(turn.whole, _whole(reader)))
        unpromised |= reader.unpromised
    else:
        root, opener, free_until = turn.free_or_calls, turn.opener, shape.opening_line
        if turn.call_word is not None:
            names = tuple(f"{turn.call_word}{name}" for name, _ in tools)
            thought_end = None if dialect.thought is None else dialect.thought[1]
            unopened = Unopened(names, "{(", thought_end, at_once=thoughts != "inside")
    return _sound(Grammar(key, root, rules, opener, unopened, free_until, unpromised=tuple(unpromised)))


def _reader(schema: str, rules: dict[str, Node], writing: Writing, prefix: str, *, lenient: bool) -> SchemaReader:
    return SchemaReader(json.loads(schema), writing, lenient, rules, prefix=prefix)


def _whole(reader: SchemaReader, *more: Mapping[str, Json]) -> Node:
    try:
        return reader.rule(reader.whole(*more))
    except RecursionError:
        raise SchemaError("#", "its parts refer to each other too often, or are too deep") from None


def _arguments(reader: SchemaReader) -> Node:
    """Return the grammar of a tool's arguments: an object, which is empty if the schema says nothing about members."""
    closed: dict[str, Json] = {"type": "object"}
    if isinstance(reader.root, Mapping) and not any(word in reader.root for word in _MEMBERS):
        closed["properties"] = {}
    return _whole(reader, closed)


def _thought(dialect: Dialect | None, thoughts: Thoughts) -> Node:
    """Return the grammar of the thought before an answer."""
    if thoughts == "none":
        return NOTHING
    around = None if dialect is None else dialect.thought
    if dialect is None or around is None:
        raise InputError(f"thoughts: the chat format {dialect and dialect.name!r} has none.")
    inside = sequence(words(), Control(around[1]))
    return (
        inside if thoughts == "inside" else maybe(sequence(Control(around[0]), Literal(dialect.thought_begins), inside))
    )


def _sound(grammar: Grammar) -> Grammar:
    """Return the grammar, after a check that its shortest text is not too long."""
    if (shortest := grammar.shortest()) > LONGEST:
        raise SchemaError("#", f"the shortest value has {shortest:,} characters, and no model writes as many")
    return grammar


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps([repr(part) for part in parts]).encode()).hexdigest()


def _checked(schema: object) -> str:
    """Return a schema as text. It is checked level by level from the outside, so one that is too deep or endless ends.

    Raises:
        SchemaError: the schema is no JSON, or too large.
    """
    if not isinstance(schema, Mapping | bool):
        raise SchemaError("#", f"expected a JSON schema, found {type(schema).__name__}")
    level: list[object] = [schema]
    values = characters = 0
    for _ in range(MAX_DEPTH):
        values += len(level)
        characters += sum(map(_size, level))
        if values > MAX_VALUES or characters > MAX_CHARACTERS:
            raise SchemaError("#", "it is too large")
        level = _below(level, MAX_VALUES - values)
        if not level:
            return json.dumps(schema, default=_plain)
    raise SchemaError("#", f"it is more than {MAX_DEPTH} levels deep, or holds itself")


def _below(level: Iterable[object], room: int) -> list[object]:
    """Return the values inside several values, stopping once there are more than ``room``."""
    found: list[object] = []
    for value in level:
        found += _inside(value)
        if len(found) > room:
            break
    return found


def _of_tool(tool: Tool) -> str:
    try:
        return _checked(tool.parameters)
    except SchemaError as error:
        raise SchemaError(f"{tool.name}: {error.at}", error.problem) from error


def _size(value: object) -> int:
    if not isinstance(value, str):
        return 0
    try:
        value.encode()
    except UnicodeEncodeError:
        raise SchemaError("#", f"it holds half a character: {value[:40]!r}") from None
    return len(value)


def _inside(value: object) -> Iterable[object]:
    match value:
        case Mapping():
            if any(not isinstance(key, str) for key in value):
                raise SchemaError("#", "the names in it are not all strings")
            return [*value, *value.values()]
        case list() | tuple():
            return value
        case float() if not isfinite(value):
            raise SchemaError("#", f"{value} is no number of JSON's")
        case int() if abs(value) >= 10**1000:
            raise SchemaError("#", "a number in it has too many digits")
        case None | bool() | str() | int() | float():
            return ()
    raise SchemaError("#", f"expected JSON, found {type(value).__name__} in it")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
