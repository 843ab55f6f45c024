"""``SearchCalls``: the calls by which a model searches for deferred tools. They are answered here, and never shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.chat.asking.tool_offer import as_bound
from langchain_gemma_jax.chat.history.searches import SEARCH, Search
from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Event, Invalid, Tool


class SearchCalls:
    """Takes the searches out of one answer's events, and finds what they ask for."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = as_bound(tools)
        self._searching = False

    def without(self, events: list[Event]) -> list[Event]:
        """Return events without those of searches. It sees all of an answer's, in order."""
        return [event for event in events if self._is_shown(event)] if self._tools.deferred else events

    def searched(self, answer: Answer, tokens: int, logprobs: Sequence[Mapping[str, Any]]) -> Search | None:
        """Return the searches that an answer asks for, with what they find; None if it asks for none."""
        if not self._tools.deferred:
            return None
        queries = tuple(str(call.arguments.get("query", "")) for call in answer.calls if call.name == SEARCH)
        if not queries:
            return None
        found = tuple(map(self._tools.searched.find, queries))
        return Search(queries, found, answer.text, answer.thinking, tokens, logprobs)

    def _is_shown(self, event: Event) -> bool:
        if isinstance(event, CallBegin):
            self._searching = event.name == SEARCH
        hidden = self._searching and isinstance(event, CallBegin | ArgumentsDelta | CallEnd)
        if isinstance(event, CallEnd | Invalid):
            self._searching = False
        return not hidden
