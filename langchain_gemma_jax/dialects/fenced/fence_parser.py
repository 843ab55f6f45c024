"""What a model without tool tokens writes: words, and calls as JSON in fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from langchain_gemma_jax.dialects.conversation.output_events import Event, Invalid, StreamParser, TextDelta
from langchain_gemma_jax.dialects.fenced.json_call_reader import JsonCallReader

OPENER, CLOSER = "```tool_call\n", "```"
_LINE, _LINE_END = "\n" + OPENER, "\n" + CLOSER
_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,\[\]]*")  # a list of calls is as good as calls one behind the other

_State: TypeAlias = Callable[[str, int], int]  # takes a text from a place on, gives how far it got


class FenceParser(StreamParser):
    """Tells words from calls in fenced blocks, which open with ``OPENER`` at the beginning of a line."""

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._state: _State = self._outside
        # Held back: what could turn out to be the beginning of a block, or its end. Where a line begins without
        # an end of line before it, one is made up, which is no part of the answer.
        self._held = "\n"
        self._made_up = True
        self._behind_call = False  # where white space is no answer
        self._ticks = 0
        self._empty = True  # no call has begun in this block
        self._call = JsonCallReader()
        self._ruins: list[str] | None = None  # of a block that cannot be understood; None: that was told already
        self._ended = False
        self._out: list[Event] = []

    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002
        """See ``StreamParser.feed``. Control tokens other than the end of the turn mean nothing here."""
        if is_control:
            return self.finish() if text in self._stops else []
        at = 0
        while at < len(text) and not self._ended:
            at = self._state(text, at)
        return self._taken()

    def finish(self) -> list[Event]:
        """See ``StreamParser.finish``."""
        if not self._ended:
            self._ended = True
            if self._state == self._in_call:
                self._out += self._call.end()
            elif self._state == self._in_block and self._empty:
                self._out.append(Invalid("", "the block ends before there is a call in it", unfinished=True))
            elif self._state == self._in_ruins:
                self._give_up(self._held)
            elif self._state == self._outside:
                self._say(self._held)
        return self._taken()

    # States

    def _outside(self, text: str, at: int) -> int:
        if self._behind_call:
            at = _behind(_SPACE, text, at)
            if at == len(text):
                return at
            self._behind_call = False
        before, end = self._search(_LINE, text, at)
        self._say(before)
        if end is None:
            return len(text)
        self._made_up, self._ticks, self._empty, self._state = False, 0, True, self._in_block
        return end

    def _in_block(self, text: str, at: int) -> int:
        if not self._ticks:
            at = _behind(_BETWEEN, text, at)
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
        self._held, self._ruins, self._state = "`" * self._ticks, [], self._in_ruins
        return at

    def _in_call(self, text: str, at: int) -> int:
        at, events = self._call.text(text, at)
        self._out += events
        if self._call.over:
            self._state = self._in_block
            if isinstance(events[-1], Invalid):
                self._held, self._ruins, self._state = "", None, self._in_ruins
        return at

    def _in_ruins(self, text: str, at: int) -> int:
        """Skip to the end of the block."""
        before, end = self._search(_LINE_END, text, at)
        if end is None:
            if self._ruins is not None:
                self._ruins.append(before)
            return len(text)
        self._give_up(before)
        self._leave_block()
        return end

    # What happens on the way

    def _search(self, wanted: str, text: str, at: int) -> tuple[str, int | None]:
        """Return the text before the wanted string and where that ends; or text that begins none of it, and None."""
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
        if self._ruins is not None:
            self._out.append(Invalid("".join([*self._ruins, rest]), "a call should be a JSON object, and this is none"))

    def _leave_block(self) -> None:
        self._held, self._made_up, self._behind_call, self._state = "\n", True, True, self._outside

    def _taken(self) -> list[Event]:
        events, self._out = self._out, []
        return events


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
