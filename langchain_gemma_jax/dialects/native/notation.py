"""The native notation of tools, calls and results: the same in each format, with different control tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_gemma_jax.dialects.conversation.messages import MAX_DEPTH
from langchain_gemma_jax.dialects.conversation.rendered_prompt import PromptWriter
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json

CALL_WORD = "call:"
"""Before the name of a tool that is called."""

_AMBIGUOUS = re.compile(r'[:,{}\[\]]|^"')  # a reader would take these for the end of a key, or for a quoted key


@dataclass(frozen=True)
class Notation:
    """A format's control tokens, and the details in which its declarations differ."""

    declaration: tuple[str, str]  # around a tool's declaration
    call: tuple[str, str]
    response: tuple[str, str]
    quote: str  # on both sides of a string, in which there are no escapes
    stops: tuple[str, ...]
    thought: tuple[str, str] | None = None
    null: str = "null"
    shows_nullable: bool = True
    shows_empty_descriptions: bool = False
    hides_keywords: bool = False  # properties that are named like a keyword of schemas are left out

    def call_to(self, out: PromptWriter, name: str, arguments: Mapping[str, Json]) -> None:
        """Write ``call:name{key:value}`` between its control tokens."""
        self._named(out, self.call, "call", name, arguments)

    def response_of(self, out: PromptWriter, name: str, payload: Mapping[str, Json]) -> None:
        """Write ``response:name{key:value}`` between its control tokens."""
        self._named(out, self.response, "response", name, payload)

    def string(self, out: PromptWriter, text: str) -> None:
        out.control(self.quote)
        out.text(text)
        out.control(self.quote)

    def strings(self, out: PromptWriter, texts: Sequence[Json]) -> None:
        """Write a list of strings."""
        out.text("[")
        for number, text in enumerate(texts):
            out.text("," if number else "")
            self.string(out, str(text))
        out.text("]")

    def value(self, out: PromptWriter, value: Json, *, quoted_keys: bool = False, depth: int = 0) -> None:
        """Write a JSON value.

        Raises:
            InputError: the value is no JSON value, or is nested too deep.
        """
        match value:
            case None:
                out.text(self.null)
            case str():
                self.string(out, value)
            case bool():
                out.text("true" if value else "false")
            case int() | float():
                out.text(_number(value))
            case Mapping():
                self._object(out, value, quoted_keys=quoted_keys, depth=depth)
            case Sequence():
                _check_depth(depth)
                out.text("[")
                for number, item in enumerate(value):
                    out.text("," if number else "")
                    self.value(out, item, quoted_keys=quoted_keys, depth=depth + 1)
                out.text("]")
            case _:
                raise InputError(f"Arguments and results are JSON values, and this is none: {type(value).__name__}.")

    def key(self, out: PromptWriter, key: str, *, quoted: bool = False) -> None:
        """Write a member's name, with quotes only if it would be ambiguous without."""
        if quoted or not _may_be_bare(key):
            self.string(out, key)
        else:
            out.text(key)

    def _named(
        self, out: PromptWriter, around: tuple[str, str], kind: str, name: str, members: Mapping[str, Json]
    ) -> None:
        out.control(around[0])
        out.text(f"{kind}:{name}")
        self._object(out, members)
        out.control(around[1])

    def _object(
        self, out: PromptWriter, members: Mapping[str, Json], *, quoted_keys: bool = False, depth: int = 0
    ) -> None:
        _check_depth(depth)
        out.text("{")
        for number, key in enumerate(in_order(members)):
            out.text("," if number else "")
            self.key(out, key, quoted=quoted_keys)
            out.text(":")
            self.value(out, members[key], quoted_keys=quoted_keys, depth=depth + 1)
        out.text("}")


def in_order(members: Mapping[str, object]) -> list[str]:
    """Return keys in the order of the published templates: alphabetical, ignoring case."""
    return sorted(members, key=str.lower)


def _may_be_bare(key: str) -> bool:
    return bool(key) and key == key.strip() and not _AMBIGUOUS.search(key)


def _number(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # Python does not print an int of more than 4300 digits
        raise InputError("A number in arguments or a result has too many digits to be written.") from None


def _check_depth(depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise InputError(f"Arguments and results: expected at most {MAX_DEPTH} levels, found more.")
