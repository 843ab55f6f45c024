"""From what the engine delivers to events: tokens told apart, and only the text that is to be shown."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from langchain_gemma_jax.dialects import Event, StreamParser
from langchain_gemma_jax.dialects.tokens import Decoder


class Reader:
    """Feeds a parser.

    The engine gives ids, control tokens among them, and the text that can be shown, which lags behind: what
    could become a stop string is held back, and a stop string is never shown. A parser needs both: the control tokens,
    and text that is sure. So ids are decoded once more, and go to the parser as far as the text was shown.
    """

    def __init__(self, parser: StreamParser, decoder: Decoder, control_name: Callable[[int], str | None]) -> None:
        self._parser = parser
        self._decoder = decoder
        self._control_name = control_name
        self._waiting: deque[tuple[str, bool]] = deque()
        self._shown = 0  # characters that may go on

    def take(self, ids: Sequence[int], text: str) -> list[Event]:
        """More tokens, and more text that can be shown."""
        for token in ids:
            name = self._control_name(token)
            self._waiting.append((self._decoder.finish() if name is not None else self._decoder.push(token), False))
            if name is not None:
                self._waiting.append((name, True))
        self._shown += len(text)
        return self._pass_on()

    def finish(self, *, complete: bool) -> list[Event]:
        """The output is over. It is complete unless a stop string ended it."""
        events: list[Event] = []
        if complete:
            self._waiting.append((self._decoder.finish(), False))
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
