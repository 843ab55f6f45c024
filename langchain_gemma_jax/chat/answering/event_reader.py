"""Events from what the engine delivers: control tokens kept apart, only the text that may be shown, calls checked."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.history.searches import SEARCH
from langchain_gemma_jax.dialects import CallBegin, CallEnd, Event, Invalid, Json, StreamParser
from langchain_gemma_jax.grammar.schema.validation import violation

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.asking.options import Options
    from langchain_gemma_jax.grammar.nodes import Grammar


class EventReader:
    """Feeds a parser with what the engine delivers of one answer.

    The engine gives ids, control tokens among them, with the text that each completed, and the text that can be shown,
    which lags behind: what could become a stop string is held back, and a stop string is never shown. A parser needs
    both: the control tokens, and text that is sure. So the tokens' texts wait here, and go to the parser as far as they
    were shown. Nothing is decoded.
    """

    def __init__(self, parser: StreamParser, control_name: Callable[[int], str | None]) -> None:
        self._parser = parser
        self._control_name = control_name
        self._waiting: deque[tuple[str, bool]] = deque()
        self._decoded = 0  # characters of all texts that came
        self._shown = 0  # characters that may go on

    def take(self, ids: Sequence[int], decoded: Sequence[str], shown: str) -> list[Event]:
        """Take more tokens, the text that each of them completed, and more text that can be shown."""
        for token, text in zip(ids, decoded, strict=True):
            self._decoded += len(text)
            self._waiting.append((text, False))
            if (name := self._control_name(token)) is not None:
                self._waiting.append((name, True))
        self._shown += len(shown)
        return self._pass_on()

    def finish(self, whole: str | None) -> list[Event]:
        """End the output, and return the last events. ``whole``: its whole text. None: a stop string ended it."""
        events: list[Event] = []
        if whole is not None:
            self._waiting.append((whole[self._decoded :], False))  # half a character, which no token completed
            self._shown = sum(len(text) for text, is_control in self._waiting if not is_control)
            events = self._pass_on()
        return [*events, *self._parser.finish()]

    def _pass_on(self) -> list[Event]:
        events: list[Event] = []
        while self._waiting:
            text, is_control = self._waiting.popleft()
            if is_control:
                events += self._parser.feed(text, is_control=True)
                continue
            ready, rest = text[: self._shown], text[self._shown :]
            self._shown -= len(ready)
            if ready:
                events += self._parser.feed(ready)
            if rest:
                self._waiting.appendleft((rest, False))
                break
        return events


class ArgumentCheck:
    """Makes calls invalid whose arguments their schemas refuse. It sees all events of one answer, in order."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Json]], unfound: Iterable[str] = ()) -> None:
        self._schemas = schemas
        self._unfound = frozenset(unfound)
        self._name = ""  # of the tool whose call is being written

    @classmethod
    def of(cls, options: Options, grammar: Grammar | None, unfound: Iterable[str] = ()) -> ArgumentCheck:
        """Return a check of the tools of which a grammar could not promise all; of none if ``strict`` is False.

        ``unfound``: the names of deferred tools that no search has found yet. They cannot be called.
        """
        unpromised = () if grammar is None or options.strict is False else grammar.unpromised
        asking = [tool for tool in options.tools if any(each.startswith(f"{tool.name}: #") for each in unpromised)]
        return cls({tool.name: tool.parameters for tool in asking}, unfound)

    def checked(self, events: list[Event]) -> list[Event]:
        """Return the events, with the end of a call that is not valid as an ``Invalid``."""
        return [self._checked(event) for event in events] if self._schemas or self._unfound else events

    def _checked(self, event: Event) -> Event:
        if isinstance(event, CallBegin):
            self._name = event.name
        if not isinstance(event, CallEnd):
            return event
        if self._name in self._unfound:
            error = (
                f"The tool {self._name!r} is deferred, and was not found yet, so it is not to be executed. Call "
                f"{SEARCH} with its name, or with words for what it does, and then call it."
            )
            return Invalid(json.dumps(dict(event.arguments), ensure_ascii=False), error, self._name)
        if (schema := self._schemas.get(self._name)) is None:
            return event
        if (problem := violation(event.arguments, schema)) is None:
            return event
        error = f"The call is not as the schema of {self._name!r} asks, and is not to be executed: {problem}."
        return Invalid(json.dumps(dict(event.arguments), ensure_ascii=False), error, self._name)
