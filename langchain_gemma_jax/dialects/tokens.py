"""From a model's tokens to a parser: text as text, control tokens by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from langchain_gemma_jax.dialects.conversation.output_events import Event, StreamParser


class Decoder(Protocol):
    """As much of a ``StreamDecoder`` as this needs. It decodes text, and is never given a control token."""

    def push(self, token_id: int) -> str: ...

    def finish(self) -> str: ...


class TokenParser:
    """Feeds a parser with tokens.

    TokenParser(dialect.parser(), StreamDecoder(tokenizer), tokenizer.control_name)
    """

    def __init__(self, parser: StreamParser, decoder: Decoder, control_name: Callable[[int], str | None]) -> None:
        self._parser = parser
        self._decoder = decoder
        self._control_name = control_name

    def push(self, ids: Iterable[int]) -> list[Event]:
        """Take more tokens."""
        events: list[Event] = []
        for token_id in ids:
            name = self._control_name(token_id)
            if name is None:
                events += self._parser.feed(self._decoder.push(token_id))
            else:
                events += self._parser.feed(self._decoder.finish())
                events += self._parser.feed(name, is_control=True)
        return events

    def finish(self) -> list[Event]:
        """The output is over."""
        return [*self._parser.feed(self._decoder.finish()), *self._parser.finish()]
