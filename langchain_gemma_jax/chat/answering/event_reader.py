"""From what the engine delivers to events: tokens told apart, and only the text that is to be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from langchain_gemma_jax.dialects import Event, StreamParser


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
