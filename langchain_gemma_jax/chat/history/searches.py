"""Searches for deferred tools, which the engine runs within a call: as messages, and in an answer's metadata.

An agent sees one answer. What the model searched for before it is in ``response_metadata["tool_search"]``, and comes
back from there with the conversation, so that the next prompt begins as the last one did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_gemma_jax.dialects import Json, Message, ToolCall

SEARCH = "tool_search"  # the tool's name, and that of the metadata

_NOTHING = "No tool fits. Search with other words, or answer without one."


@dataclass(frozen=True)
class Search:
    """One step in which a model searched for tools: its queries, the names that each found, and the words around."""

    queries: tuple[str, ...]
    found: tuple[tuple[str, ...], ...]
    text: str = ""
    thinking: str = ""
    tokens: int = 0
    """Generated tokens of the step."""
    logprobs: Sequence[Mapping[str, Any]] = field(default=(), compare=False)
    """Log-probabilities of these tokens, if the caller asked for them. The metadata has them in their own place."""

    @property
    def messages(self) -> list[Message]:
        """The step as a conversation has it: the model's calls, and their results."""
        calls = [ToolCall(SEARCH, {"query": query}) for query in self.queries]
        results = [Message.tool(_result(names), name=SEARCH) for names in self.found]
        return [Message.assistant(self.text, thinking=self.thinking, calls=calls), *results]

    @property
    def without_words(self) -> Search:
        return replace(self, text="", thinking="")

    @property
    def as_metadata(self) -> dict[str, Any]:
        """The step as plain values, for an answer's metadata."""
        searches = [
            {"query": query, "found": list(names)} for query, names in zip(self.queries, self.found, strict=True)
        ]
        words = {"text": self.text, "thinking": self.thinking}
        return {"searches": searches, "tokens": self.tokens} | {name: text for name, text in words.items() if text}


def searches_in(metadata: Mapping[str, Any]) -> tuple[Search, ...]:
    """Return the searches in an answer's metadata; none if they are of another form, as another package's may be."""
    try:
        return tuple(_read(entry) for entry in metadata.get(SEARCH, ()))
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def found_by(message: Message) -> tuple[str, ...] | None:
    """Return the names of the tools that a search found; None if the message is no result of one."""
    result = message.result
    if result is None or result.name != SEARCH or not isinstance(result.value, Mapping):
        return None
    names = result.value.get("found")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else None


def _result(names: Sequence[str]) -> Json:
    return {"found": list(names)} if names else {"found": [], "hint": _NOTHING}


def _read(entry: Mapping[str, Any]) -> Search:
    searches = entry["searches"]
    return Search(
        tuple(_text(each["query"]) for each in searches),
        tuple(tuple(map(_text, each["found"])) for each in searches),
        _text(entry.get("text", "")),
        _text(entry.get("thinking", "")),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {type(value).__name__}")
    return value
