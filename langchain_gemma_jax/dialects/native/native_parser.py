"""A parser for output in a native format: text, thoughts and calls, which control tokens separate."""

from __future__ import annotations

from collections.abc import Collection

from langchain_gemma_jax.dialects.conversation.output_events import (
    Event,
    Invalid,
    StreamParser,
    TextDelta,
    ThoughtDelta,
)
from langchain_gemma_jax.dialects.native.native_call_reader import CallReader
from langchain_gemma_jax.dialects.native.notation import CALL_WORD, Notation

_THOUGHT = "thought"  # the first line of a thought: the channel's name


class NativeParser(StreamParser):
    """Separates text, thoughts and calls by control tokens. Text is never taken for a control token.

    Models lose the token that opens a call: at the beginning of an answer, behind a thought, behind a call. There
    ``call:`` and the name of a tool that may be called begin one too. It is held back until it is whole, and what
    cannot be read as a call is words. Quotes outside of calls are words as well, so that nothing is lost.
    """

    def __init__(self, notation: Notation, *, in_thought: bool = False, tools: Collection[str] = ()) -> None:
        self._notation, self._tools = notation, frozenset(tools)
        self._call: CallReader | None = None
        self._unopened: list[Event] | None = None  # events of a call without its opener, held back until it is whole
        self._head: str | None = None if in_thought else ""  # text that may begin such a call; None: words have come
        self._space = ""  # before such a call
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
            elif self._unopened is not None:
                self._in_unopened(text)
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
            self._call = CallReader(notation, self._tools)
        elif name in notation.stops:
            self._leave(closed=False)
            self._ended = True
        elif self._unopened is not None and self._call is not None:
            self._unopened += self._call.control(name)
            if self._call.over:
                self._close_unopened(closed=True)
        elif self._call is not None:
            self._out += self._call.control(name)
        elif notation.thought is not None and name in notation.thought:
            self._leave(closed=False)
            self._thinking = name == notation.thought[0]
            self._first_line = [] if self._thinking else None
            self._after_call = True
            self._head = None if self._thinking else ""
        elif name == notation.quote:
            self._thought(name) if self._thinking else self._text(name)

    def _leave(self, *, closed: bool) -> None:
        """End the current call or thought."""
        self._give_up_head()
        if self._unopened is not None:
            self._close_unopened(closed=closed)
        if self._call is not None:
            self._out += self._call.end(closed=closed)
            self._call = None
            self._after_call = True
            self._head = ""
        if self._first_line is not None:
            self._channel("".join(self._first_line))
        self._thinking = self._line_end = False

    def _text(self, text: str) -> None:
        if self._head is None or not self._tools:
            self._say(text)
            return
        self._head += text
        begins = self._begins_call(self._head.lstrip())
        if begins:
            call = self._head.lstrip()
            self._space, self._head = self._head.removesuffix(call), None
            self._call, self._unopened = CallReader(self._notation, self._tools), []
            self._in_unopened(call)
        elif begins is False:
            self._give_up_head()

    def _begins_call(self, text: str) -> bool | None:
        """Return True if a text begins a call without its opener, False if it does not. None: more may show it."""
        if len(text) <= len(CALL_WORD):
            return None if CALL_WORD.startswith(text) else False
        if not text.startswith(CALL_WORD):
            return False
        name, may = text[len(CALL_WORD) :], False
        for tool in self._tools:
            rest = name[len(tool) :].lstrip()
            if name.startswith(tool) and rest[:1] in {"{", "("}:
                return True
            if tool.startswith(name) or (name.startswith(tool) and not rest):
                may = True
        return None if may else False

    def _give_up_head(self) -> None:
        """Say what was held back: it is words."""
        head, self._head = self._head, None
        if head:
            self._say(head)

    def _in_unopened(self, text: str) -> None:
        if self._call is None or self._unopened is None:
            return
        events, rest = self._call.until_over(text)
        self._unopened += events
        if self._call.over:
            self._close_unopened(closed=True)
            if rest:
                self._text(rest)

    def _close_unopened(self, *, closed: bool) -> None:
        """End a call without its opener: what cannot be read is words."""
        call, events = self._call, self._unopened
        self._call = self._unopened = None
        if call is None or events is None:
            return
        ending = call.end(closed=closed)
        if any(isinstance(event, Invalid) and not event.unfinished for event in ending):
            self._say(self._space + call.raw)
            return
        self._out += [*events, *ending]
        self._after_call = True
        self._head = ""

    def _say(self, text: str) -> None:
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
