"""Conversations in Gemma 4's dialect: pieces of text, each with whether the model writes it.

A tool result belongs to the model's turn but not to what the model writes. After its calls it writes
the opener of the first result, which is where whoever runs it stops and puts the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from training.data.conversation import Call, Calls, Conversation, Json, Model, Say, Tool, Turn, User

QUOTE = '<|"|>'


@dataclass(frozen=True)
class Piece:
    """Text, and whether the model writes it."""

    text: str
    by_model: bool


@dataclass(frozen=True)
class Step:
    """One thing that the model has to write, and everything before it."""

    prompt: str
    answer: str
    wanted: Calls | Say
    graded: bool


@dataclass(frozen=True)
class Question:
    """One thing to do: the conversation, which of its steps, and everything before that step in the dialect."""

    conversation: Conversation
    index: int  # of the conversation in its exam
    step: Step
    number: int  # of the step in the conversation


def pieces(conversation: Conversation) -> Iterator[Piece]:
    """The conversation from ``<bos>`` to its last turn's end."""
    yield opening(conversation)
    yield from _pieces(conversation.turns)


def opening(conversation: Conversation) -> Piece:
    """What all that is said comes after."""
    return Piece("<bos>" + _system_turn(conversation), by_model=False)


def aside_pieces(turns: Sequence[Turn]) -> list[Piece]:
    """One of a conversation's asides, up to the last thing that the model writes."""
    made = list(_pieces(turns))
    while made and not made[-1].by_model:
        made.pop()
    return made


def _pieces(turns: Sequence[Turn]) -> Iterator[Piece]:
    for turn in turns:
        if isinstance(turn, User):
            yield Piece(f"<|turn>user\n{turn.text.strip()}<turn|>\n", by_model=False)
        else:
            yield Piece("<|turn>model\n", by_model=False)
            yield from _model_turn(turn)


def steps(conversation: Conversation) -> Iterator[Step]:
    """Everything that the model has to write, with all that goes before as it should have been."""
    wanted = [(step, turn.graded) for turn in conversation.turns if isinstance(turn, Model) for step in turn.steps]
    before = ""
    for piece in pieces(conversation):
        if piece.by_model:
            step, graded = wanted.pop(0)
            yield Step(before, piece.text, step, graded)
        before += piece.text


def declaration(tool: Tool) -> str:
    """A tool as the model is told of it."""
    body = f"description:{_quoted(tool.description)},parameters:{_parameters(tool.parameters)}"
    return f"<|tool>declaration:{tool.name}{{{body}}}<tool|>"


def call(tool: str, arguments: dict[str, Json]) -> str:
    """A call as the model writes it."""
    return f"<|tool_call>call:{tool}{value(arguments)}<tool_call|>"


def value(item: Json) -> str:
    """A JSON value in the dialect: strings between their own quotes, keys bare and in order."""
    match item:
        case None:
            return "null"
        case bool():
            return "true" if item else "false"
        case str():
            return _quoted(item)
        case list():
            return "[" + ",".join(map(value, item)) + "]"
        case dict():
            return "{" + ",".join(f"{key}:{value(item[key])}" for key in _in_order(item)) + "}"
        case float() if item.is_integer():
            return str(int(item))
        case _:
            return str(item)


def _system_turn(conversation: Conversation) -> str:
    if not conversation.system and not conversation.tools:
        return ""
    declared = "".join(map(declaration, conversation.tools))
    return f"<|turn>system\n{conversation.system.strip()}{declared}<turn|>\n"


def _model_turn(turn: Model) -> Iterator[Piece]:
    for step in turn.steps:
        if isinstance(step, Say):
            yield Piece(step.text.strip() + "<turn|>", by_model=True)
            yield Piece("\n", by_model=False)
            return
        opener = "<|tool_response>"
        yield Piece("".join(call(each.tool, each.arguments) for each in step.calls) + opener, by_model=True)
        yield Piece("".join(map(_response, step.calls)).removeprefix(opener), by_model=False)


def _response(each: Call) -> str:
    reply: dict[str, Json] = {"value": each.reply} if isinstance(each.reply, str) else each.reply
    return f"<|tool_response>response:{each.tool}{value(reply)}<tool_response|>"


def _quoted(text: str) -> str:
    return f"{QUOTE}{text}{QUOTE}"


def _in_order(table: dict[str, Json]) -> list[str]:
    return sorted(table, key=str.lower)


def _parameters(schema: dict[str, Json]) -> str:
    fields = []
    if properties := schema.get("properties"):
        assert isinstance(properties, dict)  # noqa: S101  the schemas are this package's own
        fields.append(f"properties:{_properties(properties)}")
        if required := schema.get("required"):
            fields.append(f"required:{value(required)}")
    return "{" + ",".join([*fields, f"type:{_quoted('OBJECT')}"]) + "}"


def _properties(table: dict[str, Json]) -> str:
    shown = []
    for name in _in_order(table):
        field = table[name]
        assert isinstance(field, dict)  # noqa: S101
        shown.append(f"{name}:{_property(field)}")
    return "{" + ",".join(shown) + "}"


def _property(field: dict[str, Json]) -> str:
    kind = str(field["type"])
    fields = [f"description:{_quoted(str(field['description']))}"] if field.get("description") else []
    if (enum := field.get("enum")) is not None:
        fields.append(f"enum:{value(enum)}")
    if isinstance(items := field.get("items"), dict):
        fields.append(f"items:{_property(items)}")
    if field.get("nullable"):
        fields.append("nullable:true")
    if isinstance(inner := field.get("properties"), dict):
        fields.append(f"properties:{_properties(inner)}")
        if inner_required := field.get("required"):
            fields.append(f"required:{value(inner_required)}")
    return "{" + ",".join([*fields, f"type:{_quoted(kind.upper())}"]) + "}"
