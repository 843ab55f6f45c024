"""A parser for output in a native format: text, thoughts and calls, which control tokens separate."""

from __future__ import annotations

from langchain_gemma_jax.dialects.conversation.output_events import Event, StreamParser, TextDelta, ThoughtDelta
from langchain_gemma_jax.dialects.native.native_call_reader import CallReader
from langchain_gemma_jax.dialects.native.notation import Notation

_THOUGHT = "thought"  # the first line of a thought: the channel's name


class NativeParser(StreamParser):
    """Separates text, thoughts and calls by control tokens. Text is never taken for a control token."""

    def __init__(self, notation: Notation, *, in_thought: bool = False) -> None:
        self._notation = notation
        self._call: CallReader | None = None
        self._thinking = in_thought
        self._first_line: list[str] | None = None  # the first line of a thought, until it is complete
        self._line_end = False  # a thought's line end is held back: the last one belongs to the format
        self._after_call = False  # white space here is no part of the answer
        self._ended = False
        self._out: list[Event] = []

    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002
        """See ``StreamParser.feed``."""
        if not self._ended:
            if is_control:
                self._control(text)
            elif self._call is not None:
                self._out += self._call.text(text)
            elif self._thinking:
                self._thought(text)
            else:
                self._text(text)
        return self._take_events()

    def finish(self) -> list[Event]:
        """See ``StreamParser.finish``."""
        if not self._ended:
            self._leave(closed=False)
        self._ended = True
        return self._take_events()

    def _control(self, name: str) -> None:
        notation = self._notation
        begin_call, end_call = notation.call
        if name == end_call and self._call is not None:
            self._leave(closed=True)
        elif name == begin_call:
            self._leave(closed=False)
            self._call = CallReader(notation)
        elif name in notation.stops:
            self._leave(closed=False)
            self._ended = True
        elif self._call is not None:
            self._out += self._call.control(name)
        elif notation.thought is not None and name in notation.thought:
            self._leave(closed=False)
            self._thinking = name == notation.thought[0]
            self._first_line = [] if self._thinking else None
            self._after_call = True

    def _leave(self, *, closed: bool) -> None:
        """End the current call or thought."""
        if self._call is not None:
            self._out += self._call.end(closed=closed)
            self._call = None
            self._after_call = True
        if self._first_line is not None:
            self._channel("".join(self._first_line))
        self._thinking = self._line_end = False

    def _text(self, text: str) -> None:
        if self._after_call:
            text = text.lstrip()
            self._after_call = not text
        if text:
            self._out.append(TextDelta(text))

    def _thought(self, text: str) -> None:
        if self._first_line is None:
            self._thinks(text)
            return
        line, end, rest = text.partition("\n")
        self._first_line.append(line)
        if end:
            self._channel("".join(self._first_line), "\n")
            self._thinks(rest)

    def _channel(self, line: str, end: str = "") -> None:
        self._first_line = None
        if line.strip() != _THOUGHT:
            self._thinks(line + end)

    def _thinks(self, text: str) -> None:
        if not text:
            return
        text = "\n" * self._line_end + text
        self._line_end = text.endswith("\n")
        if text := text.removesuffix("\n"):
            self._out.append(ThoughtDelta(text))

    def _take_events(self) -> list[Event]:
        events, self._out = self._out, []
        return events
