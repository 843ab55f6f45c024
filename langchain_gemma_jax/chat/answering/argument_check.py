"""Calls that are not as their tool's schema asks, where no grammar could promise that they would be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from langchain_gemma_jax.dialects import CallBegin, CallEnd, Event, Invalid, Json
from langchain_gemma_jax.grammar.schema.validation import violation

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.asking.options import Options
    from langchain_gemma_jax.grammar.nodes import Grammar


class ArgumentCheck:
    """Makes calls invalid whose arguments their schemas refuse. It is asked for all of one answer, in order."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Json]]) -> None:
        self._schemas = schemas
        self._name = ""  # of the tool whose call is being written

    @classmethod
    def of(cls, options: Options, grammar: Grammar | None) -> ArgumentCheck:
        """Return the check of the tools of which something could not be promised; of none, if that is not wanted."""
        unpromised = () if grammar is None or options.strict is False else grammar.unpromised
        asking = [tool for tool in options.tools if any(each.startswith(f"{tool.name}: #") for each in unpromised)]
        return cls({tool.name: tool.parameters for tool in asking})

    def checked(self, events: list[Event]) -> list[Event]:
        """Return the events, with the end of a call that is not valid as an ``Invalid``."""
        return [self._checked(event) for event in events] if self._schemas else events

    def _checked(self, event: Event) -> Event:
        if isinstance(event, CallBegin):
            self._name = event.name
        schema = self._schemas.get(self._name)
        if not isinstance(event, CallEnd) or schema is None:
            return event
        if (problem := violation(event.arguments, schema)) is None:
            return event
        error = f"The call is not as the schema of {self._name!r} asks, and is not to be executed: {problem}."
        return Invalid(json.dumps(dict(event.arguments), ensure_ascii=False), error, self._name)
