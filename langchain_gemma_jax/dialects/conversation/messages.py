"""Messages of a conversation, as dialects take them: plain frozen values, no framework's classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast, get_args

from langchain_gemma_jax.bounded_json import bounded_loads
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json
from langchain_gemma_jax.media.block_forms import MediaBlock

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

MAX_DEPTH = 64  # of nested objects and arrays in arguments and results


@dataclass(frozen=True)
class Text:
    """A part of a message: its text."""

    text: str


@dataclass(frozen=True)
class Thinking:
    """A part of an answer: a thought of the model."""

    text: str


@dataclass(frozen=True)
class MediaPart:
    """A part of a message or of a tool's result: an image, a sound or a document, not decoded yet."""

    block: MediaBlock


MessagePart: TypeAlias = Text | Thinking | MediaPart


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool, by the model."""

    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class ToolResult:
    """A tool's result: a text, or any JSON value.

    It belongs to the call with its ``id``. Without an id the ``name`` decides, and without a name its position.
    """

    value: Json
    id: str | None = None
    name: str | None = None
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()
    """Media that the tool returned with the value: screenshots, pages, recordings."""
    declares: tuple[Tool, ...] = ()
    """Tools that were found by a search, whose result this is. They are declared behind it."""

    @property
    def payload(self) -> Mapping[str, Json]:
        """The result as the object that tool formats need: an object as it is, any other value under a key."""
        if self.is_error:
            has_error = isinstance(self.value, Mapping) and "error" in self.value
            return cast("Mapping[str, Json]", self.value) if has_error else {"error": self.value}
        return self.value if isinstance(self.value, Mapping) else {"value": self.value}


@dataclass(frozen=True)
class Message:
    """One message. ``Message.system``, ``user``, ``assistant`` and ``tool`` make the four kinds."""

    role: Role
    content: tuple[MessagePart, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    result: ToolResult | None = None

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise InputError(f"role: expected one of {', '.join(get_args(Role))}, found {self.role!r}.")
        if (self.role == "tool") != (self.result is not None):
            raise InputError(f"A message has a result if, and only if, it is a tool's; this one is of {self.role!r}.")
        if self.role in {"system", "assistant"} and any(isinstance(part, MediaPart) for part in self.content):
            raise InputError(f"Users and tools show images and sounds; this message is of {self.role!r}.")
        if self.role != "assistant" and (self.calls or any(isinstance(part, Thinking) for part in self.content)):
            raise InputError(f"Only the assistant calls tools and thinks; this message is of {self.role!r}.")

    @classmethod
    def system(cls, *texts: str) -> Message:
        return cls("system", tuple(map(Text, texts)))

    @classmethod
    def user(cls, *parts: str | MessagePart) -> Message:
        return cls("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))

    @classmethod
    def assistant(cls, text: str = "", *, thinking: str = "", calls: Sequence[ToolCall] = ()) -> Message:
        thoughts = (Thinking(thinking),) if thinking else ()
        return cls("assistant", (*thoughts, Text(text)), tuple(calls))

    @classmethod
    def tool(
        cls,
        value: Json,
        *,
        id: str | None = None,  # noqa: A002  the usual name
        name: str | None = None,
        is_error: bool = False,
        media: Sequence[MediaPart] = (),
    ) -> Message:
        return cls("tool", result=ToolResult(value, id, name, is_error, tuple(media)))

    @property
    def texts(self) -> list[str]:
        return [part.text for part in self.content if isinstance(part, Text)]

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The images, sounds and documents of the message, in order."""
        own = tuple(part for part in self.content if isinstance(part, MediaPart))
        return own if self.result is None else (*own, *self.result.media)

    @property
    def thinking(self) -> str:
        return "\n".join(part.text for part in self.content if isinstance(part, Thinking))


@dataclass(frozen=True)
class Tool:
    """A tool that the model may call. ``parameters`` is the JSON schema of its arguments, an object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    deferred: bool = False
    """Declared once a search has found it, and not at the beginning."""

    @classmethod
    def of(cls, declared: Mapping[str, Json]) -> Tool:
        """Return the tool of a declaration in OpenAI's form.

        That is ``{name, description, parameters}``, bare or as the ``function`` of ``{type, function}``. Either may
        have ``defer_loading``.

        Raises:
            InputError: the declaration is not of that form.
        """
        function = declared.get("function", declared)
        if not isinstance(function, Mapping):
            raise InputError(f"A tool's function: expected an object, found {type(function).__name__}.")
        name = function.get("name")
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"A tool's name: expected a string that is not empty, found {name!r}.")
        description, parameters = function.get("description") or "", function.get("parameters") or {}
        if not isinstance(description, str):
            raise InputError(f"The description of the tool {name!r}: expected a string, found {description!r}.")
        if not isinstance(parameters, Mapping):
            raise InputError(f"The parameters of the tool {name!r}: expected a JSON schema, found {parameters!r}.")
        deferred = declared.get("defer_loading", function.get("defer_loading"))
        if deferred is not None and not isinstance(deferred, bool):
            raise InputError(f"defer_loading of the tool {name!r}: expected True or False, found {deferred!r:.100}.")
        return cls(name, description, parameters, bool(deferred))


def result_value(text: str) -> Json:
    """Return a tool's text in the form of a result: the object, if the text is a JSON object, otherwise the text.

    An object with very many values also stays a text.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        value = bounded_loads(text)
    except (ValueError, RecursionError):
        return text
    return cast("Json", value) if isinstance(value, dict) and _depth_within(value, MAX_DEPTH - 1) else text


def _depth_within(value: object, limit: int) -> bool:
    level: list[object] = [value]
    for _ in range(limit):
        nested: list[object] = []
        for item in level:
            if isinstance(item, dict):
                nested.extend(item.values())
            elif isinstance(item, list):
                nested.extend(item)
        level = nested
        if not level:
            return True
    return not any(isinstance(item, dict | list) for item in level)
