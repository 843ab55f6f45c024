"""What a conversation is, before it becomes text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True)
class Tool:
    """A tool as the model is told of it. ``parameters`` is the JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Json]


@dataclass(frozen=True)
class Call:
    """A tool called with arguments, and what comes back: a mapping, or a text."""

    tool: str
    arguments: dict[str, Json]
    reply: dict[str, Json] | str


@dataclass(frozen=True)
class Calls:
    """A step of the model: one call, or several at once."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Say:
    """A step of the model: words.

    ``facts`` are what has to be in them, word for word, to be right; with ``exact`` nothing else may be.
    """

    text: str
    facts: tuple[str, ...] = ()
    exact: bool = False


@dataclass(frozen=True)
class User:
    """What the user says."""

    text: str


@dataclass(frozen=True)
class Model:
    """A turn of the model: any number of steps with calls, then words."""

    steps: tuple[Calls | Say, ...]
    graded: bool = True  # whether this turn shows the skill, or only leads up to it


Turn: TypeAlias = User | Model


@dataclass(frozen=True)
class Conversation:
    """A whole conversation, and the skill that it shows.

    ``asides`` are what might be said instead of its turns, to the same tools. They are learned beside it, and
    none of them knows of another. ``kinds`` are those of the values of properties, by name.
    """

    skill: str
    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    system: str = ""
    tags: tuple[str, ...] = field(default=())  # finer than the skill: "cjk", "8 tools"
    asides: tuple[tuple[Turn, ...], ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
