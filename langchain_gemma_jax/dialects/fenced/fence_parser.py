"""A parser for the output of models without tool tokens: text, and calls as JSON in fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from langchain_gemma_jax.dialects.conversation.output_events import Event, Invalid, StreamParser, TextDelta
from langchain_gemma_jax.dialects.fenced.json_call_reader import JsonCallReader

OPENER, CLOSER = "```tool_call\n", "```"
_LINE, _LINE_END = "\n" + OPENER, "\n" + CLOSER
_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,\[\]]*")  # calls may come one after the other, or in a list

_State: TypeAlias = Callable[[str, int], int]  # reads a text from an index on, and returns the index it reached


class FenceParser(StreamParser):
    """Separates text from calls in fenced blocks, which open with ``OPENER`` at the beginning of a line."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._state: _State = self._outside
        # Text that is held back because it may be the beginning of a block, or its end. At the beginning of the output
        # and after a block a line end is made up, since ``_LINE`` begins with one. It is no part of the answer.
        self._held = "\n"
        self._made_up = True
        self._after_call = False  # white space here is no part of the answer
        self._ticks = 0
        self._empty = True  # no call has begun in this block
        self._call = JsonCallReader()
        self._invalid: list[str] | None = None  # text of a block that cannot be parsed; None: reported already
        self._ended = False
        self._out: list[Event] = []

    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002
        """See ``StreamParser.feed``. Control tokens other than the end of the turn are ignored."""
        if is_control:
            return self.finish() if text in self._stops else []
        at = 0
        while at < len(text) and not self._ended:
            at = self._state(text, at)
        return self._take_events()

    def finish(self) -> list[Event]:
        """See ``StreamParser.finish``."""
        if not self._ended:
            self._ended = True
            if self._state == self._in_call:
                self._out += self._call.end()
            elif self._state == self._in_block and self._empty:
                self._out.append(Invalid("", "the block ends before there is a call in it", unfinished=True))
            elif self._state == self._in_invalid:
                self._give_up(self._held)
            elif self._state == self._outside:
                self._say(self._held)
        return self._take_events()

    # States

    def _outside(self, text: str, at: int) -> int:
        if self._after_call:
            at = _skip(_SPACE, text, at)
            if at == len(text):
                return at
            self._after_call = False
        before, end = self._search(_LINE, text, at)
        self._say(before)
        if end is None:
            return len(text)
        self._made_up, self._ticks, self._empty, self._state = False, 0, True, self._in_block
        return end

    def _in_block(self, text: str, at: int) -> int:
        if not self._ticks:
            at = _skip(_BETWEEN, text, at)
            if at == len(text):
                return at
            if text[at] == "{":
                self._call, self._empty, self._state = JsonCallReader(), False, self._in_call
                return at
        if text[at] == "`":
            self._ticks += 1
            if self._ticks == len(CLOSER):
                self._leave_block()
            return at + 1
        self._held, self._invalid, self._state = "`" * self._ticks, [], self._in_invalid
        return at

    def _in_call(self, text: str, at: int) -> int:
        at, events = self._call.text(text, at)
        self._out += events
        if self._call.over:
            self._state = self._in_block
            if isinstance(events[-1], Invalid):
                self._held, self._invalid, self._state = "", None, self._in_invalid
        return at

    def _in_invalid(self, text: str, at: int) -> int:
        """Skip to the end of the block."""
        before, end = self._search(_LINE_END, text, at)
        if end is None:
            if self._invalid is not None:
                self._invalid.append(before)
            return len(text)
        self._give_up(before)
        self._leave_block()
        return end

    # Steps of the states

    def _search(self, wanted: str, text: str, at: int) -> tuple[str, int | None]:
        """Search for a string. Return the text before it and the index after it.

        If it has not come yet, return the text that cannot be a part of it, and None.
        """
        seam = self._held + text[at : at + len(wanted) - 1]
        start = seam.find(wanted)
        if start >= 0:
            return seam[:start], at + start + len(wanted) - len(self._held)
        start = text.find(wanted, at)
        if start >= 0:
            return self._held + text[at:start], start + len(wanted)
        seen = self._held + text[at:]
        longest = min(len(wanted) - 1, len(seen))
        kept = next((length for length in range(longest, 0, -1) if seen.endswith(wanted[:length])), 0)
        self._held = seen[len(seen) - kept :]
        return seen[: len(seen) - kept], None

    def _say(self, text: str) -> None:
        if text and self._made_up:
            text, self._made_up = text[1:], False
        if text:
            self._out.append(TextDelta(text))

    def _give_up(self, rest: str) -> None:
        if self._invalid is not None:
            self._out.append(
                Invalid("".join([*self._invalid, rest]), "a call should be a JSON object, and this is none")
            )

    def _leave_block(self) -> None:
        self._held, self._made_up, self._after_call, self._state = "\n", True, True, self._outside

    def _take_events(self) -> list[Event]:
        events, self._out = self._out, []
        return events


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
