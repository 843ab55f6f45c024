"""A parser for the output of models whose calls are between marks: text, thoughts and calls, while they come."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from typing import TypeAlias

from langchain_gemma_jax.dialects.conversation.output_events import (
    Event,
    Invalid,
    StreamParser,
    TextDelta,
    ThoughtDelta,
)
from langchain_gemma_jax.dialects.fenced.json_call_reader import JsonCallReader
from langchain_gemma_jax.dialects.templated.call_forms import CallForm

_BETWEEN = re.compile(r"[\s,;\[\]]*")  # between calls, one after the other or in a list

_State: TypeAlias = Callable[[], bool]  # works on the held text, and returns True if it should be called again


class MarkedParser(StreamParser):
    """Separates text, thoughts and calls by marks: control tokens, or text for a mark that the vocabulary lacks."""

    def __init__(
        self,
        form: CallForm | None,
        control: Collection[str],
        stops: Collection[str],
        thought: tuple[str, str] | None,
        *,
        in_thought: bool = False,
    ) -> None:
        self._form, self._control, self._stops, self._thought = form, control, stops, thought
        self._held = ""
        self._state: _State = self._thinking if in_thought else self._outside
        self._call: JsonCallReader | None = None
        self._named: str | None = None  # the text before a call's arguments, where the tool's name is
        self._invalid: list[str] = []  # text of calls that cannot be parsed
        self._none_yet = False  # calls were opened, and none has come
        self._began = False  # text other than white space came, or calls
        self._after_mark = in_thought  # white space here is no part of the answer
        self._ended = False
        self._out: list[Event] = []

    def feed(self, text: str, is_control: bool = False) -> list[Event]:  # noqa: FBT001, FBT002
        """See ``StreamParser.feed``. Control tokens that are no marks are ignored."""
        if not self._ended:
            if is_control:
                self._mark(text)
            else:
                self._held += text
                while self._state():
                    pass
        return self._take_events()

    def finish(self) -> list[Event]:
        """See ``StreamParser.finish``."""
        if not self._ended:
            self._leave(at_end=True)
            self._ended = True
        return self._take_events()

    # States. Each takes from the held text, and returns True if the current state should be called again.

    def _outside(self) -> bool:
        form = self._form
        if form is not None and form.bare and not self._began:
            seen = self._held.lstrip()
            if not seen or (len(seen) < len(form.opener) and form.opener.startswith(seen)):
                return False
            if seen.startswith(form.opener):
                self._held, self._state, self._began = seen, self._between, True
                return True
        marks = [self._opener, *(self._thought[:1] if self._thought is not None else ())]
        found = self._until([each for each in marks if each and each not in self._control], self._say)
        if found is None:
            return False
        self._enter(found)
        return True

    def _thinking(self) -> bool:
        end = self._thought[1] if self._thought else ""
        found = self._until([end] if end and end not in self._control else [], self._think)
        if found is None:
            return False
        self._state, self._after_mark = self._outside, True
        return True

    def _between(self) -> bool:
        """Read between calls: before the first, or after one."""
        form = self._form
        if form is not None and form.argument_mark:
            self._named = (self._named or "") + self._held
            self._held = ""
            return self._name_is_over()
        match = _BETWEEN.match(self._held)
        self._held = self._held[match.end() if match else 0 :]
        if not self._held:
            return False
        if self._held[0] == "{":
            self._call, self._none_yet, self._state = JsonCallReader(), False, self._in_call
            return True
        closer = form.closer if form else ""
        if closer and closer not in self._control:
            if self._held.startswith(closer):
                self._leave_with_rest(self._held[len(closer) :])
                return True
            if closer.startswith(self._held):
                return False
        if form is not None and form.bare:
            self._leave()
            return True
        self._state = self._in_invalid
        return True

    def _in_call(self) -> bool:
        call = self._call
        if call is None or not self._held:
            return False
        at, events = call.text(self._held, 0)
        self._out += events
        self._held = self._held[at:]
        if call.over:
            self._call, self._state = None, self._between
            if events and isinstance(events[-1], Invalid):
                self._none_yet, self._state = False, self._in_invalid
        return call.over

    def _in_arguments(self) -> bool:
        if self._call is not None and self._held:
            _, events = self._call.text(self._held, 0)
            self._out += events
        self._held = ""
        return False

    def _in_invalid(self) -> bool:
        """Skip to the end of the calls."""
        closer = self._form.closer if self._form else ""
        found = self._until([closer] if closer and closer not in self._control else [], self._invalid.append)
        if found is None:
            return False
        self._leave_with_rest(self._held)
        return True

    # Marks

    @property
    def _opener(self) -> str:
        return self._form.opener if self._form is not None and not self._form.bare else ""

    def _mark(self, name: str) -> None:
        form = self._form
        if name in self._stops:
            self._leave(at_end=True)
            self._ended = True
        elif form is not None and name == form.argument_mark:
            self._begin_arguments()
        elif form is not None and name in {self._opener, form.closer}:
            self._leave()
            if name == self._opener:
                self._enter(name)
        elif self._thought is not None and name in self._thought:
            self._leave()
            if name == self._thought[0]:
                self._enter(name)
            else:
                self._after_mark = True

    def _enter(self, name: str) -> None:
        if self._thought is not None and name == self._thought[0]:
            self._state, self._after_mark = self._thinking, True
            return
        self._state, self._none_yet, self._began, self._named = self._between, True, True, None

    def _leave(self, *, at_end: bool = False) -> None:
        """End the current text, thought or calls."""
        if self._state == self._outside:
            self._say(self._held)
        elif self._state == self._thinking:
            self._think(self._held)
        elif self._state == self._in_arguments and self._call is not None:
            self._out += self._call.text("}", 0)[1]
            self._out += self._call.end()
        elif self._state == self._in_call and self._call is not None:
            self._out += self._call.end()
        elif self._state == self._in_invalid:
            raw = "".join(self._invalid) + self._held
            if self._none_yet:
                self._out.append(Invalid(raw, "a call should be a JSON object, and this is none"))
            self._invalid.clear()
        elif self._state == self._between and self._none_yet:
            raw = (self._named or "") + self._held
            self._out.append(Invalid(raw, "the calls end before there is one", unfinished=at_end))
        bare_rest = self._held if self._state == self._between and not self._none_yet else ""
        after_calls = self._state not in {self._outside, self._thinking}
        self._held = bare_rest if self._form is not None and self._form.bare else ""
        self._call, self._none_yet, self._state = None, False, self._outside
        self._after_mark = self._after_mark or after_calls
        if at_end and self._held:
            self._say(self._held)

    def _leave_with_rest(self, rest: str) -> None:
        """End the calls at a mark that is text, and go on with the text after it."""
        self._held = ""
        self._leave()
        self._held = rest

    def _name_is_over(self) -> bool:
        """Begin the arguments if the mark before them is text and has come."""
        form = self._form
        if form is None or form.argument_mark in self._control or form.argument_mark not in (self._named or ""):
            return False
        self._named, _, self._held = (self._named or "").partition(form.argument_mark)
        self._begin_arguments()
        return self._in_arguments()

    def _begin_arguments(self) -> None:
        name = (self._named or "").strip()
        self._call, self._none_yet, self._state, self._named = JsonCallReader(), False, self._in_arguments, None
        self._out += self._call.text(f'{{"name": {json.dumps(name)}, "arguments": ', 0)[1]

    # Events

    def _until(self, marks: list[str], emit: Callable[[str], None]) -> str | None:
        """Emit the held text up to the first of the marks, and drop the mark. Return it, or None if none came yet."""
        places = [(at, each) for each in marks if (at := self._held.find(each)) >= 0]
        if places:
            at, found = min(places)
            before, self._held = self._held[:at], self._held[at + len(found) :]
            emit(before)
            return found
        kept = max((_overlap(self._held, each) for each in marks), default=0)
        text, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
        if text:
            emit(text)
        return None

    def _say(self, text: str) -> None:
        if self._after_mark:
            text = text.lstrip()
            self._after_mark = not text
        if text:
            self._began = self._began or not text.isspace()
            self._out.append(TextDelta(text))

    def _think(self, text: str) -> None:
        if self._after_mark:
            text = text.lstrip("\n")
            self._after_mark = not text
        if text:
            self._out.append(ThoughtDelta(text))

    def _take_events(self) -> list[Event]:
        events, self._out = self._out, []
        return events


def _overlap(text: str, wanted: str) -> int:
    """Return the number of characters at the end of a text that may be the beginning of the wanted string."""
    longest = min(len(wanted) - 1, len(text))
    return next((length for length in range(longest, 0, -1) if text.endswith(wanted[:length])), 0)
