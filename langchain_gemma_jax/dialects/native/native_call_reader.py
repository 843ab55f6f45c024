"""A reader of one call in a native format, while it comes: ``call:name{key:value}`` to JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from math import isfinite
from typing import TypeAlias, cast

from langchain_gemma_jax.dialects.conversation.messages import MAX_DEPTH
from langchain_gemma_jax.dialects.conversation.output_events import ArgumentsDelta, CallBegin, CallEnd, Event, Invalid
from langchain_gemma_jax.dialects.native.notation import Notation
from langchain_gemma_jax.grammar.json_value import Json

_KEY_END = re.compile(r"[:,{}\[\]]")
_WORD_END = re.compile(r"[,}\]]")
_NAME_END, _BRACE = re.compile(r"[{(]"), re.compile(r"\{")
_ROUND_KEY_END = re.compile(r"[:=,{}()\[\]]")
_ROUND_WORD_END = re.compile(r"[,)}\]]")
_SINGLE = re.compile(r'\\.|"', re.DOTALL)  # what Python's single quotes have otherwise than JSON's
_AS_DOUBLE = {"\\'": "'", '"': '\\"'}
_PYTHON: Mapping[str, Json] = {"True": True, "False": False, "None": None}
_IN_JSON_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)  # up to its end, or to a backslash at the text's end
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")

_State: TypeAlias = Callable[[str, int], int]  # reads a text from an index on, and returns the index it reached


class CallReader:
    """Reads one call: a state machine whose states are methods, and which reads each character once.

    Models without a grammar make mistakes. These are repaired where the meaning is clear: words without quotes are
    strings, JSON's quotes are accepted, an extra comma is ignored, and brackets that are still open at the end of the
    call are closed. Of the tools that are named, calls as Python has them are read too, ``call:name(key="value")``, and
    those that lack the word ``call``. Everything else makes the call invalid.
    """

    def __init__(self, notation: Notation, tools: Collection[str] = ()) -> None:
        self._quote, self._tools = notation.quote, tools
        self._words: Mapping[str, Json] = {"true": True, "false": False, "null": None, notation.null: None}
        self._round = False  # the arguments are in round brackets
        self._state: _State = self._in_name
        self._raw: list[str] = []  # the call as it was written
        self._held: list[str] = []  # text of a name, a key, a word or a string that is not complete
        self._escaped = False  # after a backslash in JSON's quotes
        self._open: list[dict[str, Json] | list[Json]] = []
        self._keys: list[str] = []  # keys that have no value yet
        self._arguments: dict[str, Json] = {}
        self._name: str | None = None
        self._error: str | None = None
        self._json: list[str] = []  # text of the arguments, not emitted yet
        self._out: list[Event] = []

    @property
    def raw(self) -> str:
        """The call as it was written."""
        return "".join(self._raw)

    @property
    def over(self) -> bool:
        """True if the arguments are complete, or the call is invalid."""
        return self._error is not None or self._state == self._at_end

    @property
    def failed(self) -> bool:
        """True if the call is invalid."""
        return self._error is not None

    def text(self, text: str) -> list[Event]:
        self._raw.append(text)
        at = 0
        while at < len(text):
            at = self._state(text, at)
        return self._take_events()

    def until_over(self, text: str) -> tuple[list[Event], str]:
        """Read a text up to the end of the call. Return the events, and the text behind it."""
        at = 0
        while at < len(text) and not self.over:
            at = self._state(text, at)
        at = min(at, len(text))
        self._raw.append(text[:at])
        return self._take_events(), text[at:]

    def control(self, name: str) -> list[Event]:
        """Read a control token inside the call. Only the quotes of strings are allowed there."""
        self._raw.append(name)
        if name != self._quote:
            self._fail(f"the control token {name} is inside the call")
        elif self._state == self._in_string:
            value = "".join(self._held)
            self._json.append('"')
            self._complete(value)
        elif self._state == self._in_quoted_key:
            self._key("".join(self._held))
            self._state = self._at_colon
        elif self._state == self._at_value:
            self._begin_item()
            self._json.append('"')
            self._hold(self._in_string)
        elif self._state == self._at_key:
            self._hold(self._in_quoted_key)
        else:
            self._fail("there is a quote where none can be")
        return self._take_events()

    def end(self, *, closed: bool) -> list[Event]:
        """End the call, because it was ``closed`` or because the output is over, and return its last events."""
        if closed and self._error is None:
            self._repair()
        unfinished = not closed and self._error is None
        if self._error is None and self._state != self._at_end:
            self._fail("the call ends before its arguments do" if self._name else "there is no tool's name")
        if self._error is None:
            self._emit(CallEnd(self._arguments))
        else:
            self._emit(Invalid("".join(self._raw), self._error, self._name, unfinished))
        return self._take_events()

    def _repair(self) -> None:
        if self._state == self._in_name:  # `call:name` is read as `call:name{}`
            self._begin()
        elif self._state == self._in_word:
            self._word()
        if self._state in (self._at_key, self._after_value):
            while self._open and self._error is None:
                self._close()

    # States

    def _in_name(self, text: str, at: int) -> int:
        found = _NAME_END.search(text, at)
        if found is not None and found[0] == "(" and not self._is_tool(text[at : found.start()]):
            found = _BRACE.search(text, found.end())  # that bracket was part of what is no tool's name
        self._held.append(text[at : len(text) if found is None else found.start()])
        if found is None:
            return len(text)
        self._round = found[0] == "("
        self._begin()
        return found.end()

    def _at_key(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        if text[at] == self._closer:
            self._close()
            return at + 1
        if text[at] == '"':
            self._hold(self._in_json_key)
            return at + 1
        self._hold(self._in_key)
        return at

    def _in_key(self, text: str, at: int) -> int:
        end = (_ROUND_KEY_END if self._in_round else _KEY_END).search(text, at)
        self._held.append(text[at : end.start() if end else len(text)])
        if end is None:
            return len(text)
        key = "".join(self._held).strip()
        if end[0] not in self._colons or not key:
            return self._fail("a key and a colon should be where " + repr(end[0]) + " is")
        self._key(key)
        self._state = self._at_value
        return end.end()

    def _in_quoted_key(self, text: str, at: int) -> int:
        self._held.append(text[at:])
        return len(text)

    def _in_json_key(self, text: str, at: int) -> int:
        at, key = self._json_string(text, at)
        if key is not None:
            self._key(key)
            self._state = self._at_colon
        return at

    def _at_colon(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        if text[at] not in self._colons:
            return self._fail(f"a colon should be where {text[at]!r} is")
        self._state = self._at_value
        return at + 1

    def _at_value(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        character = text[at]
        if character == "]" and isinstance(self._open[-1], list):
            self._close()
        elif character in "{[":
            if len(self._open) == MAX_DEPTH:
                return self._fail(f"it is nested more than {MAX_DEPTH} levels deep")
            self._begin_item()
            self._enter({} if character == "{" else [])
        elif character in ",}]" or (character == ")" and self._in_round):
            return self._fail(f"a value should be where {character!r} is")
        elif character == "'" and self._round:
            self._begin_item()
            self._hold(self._in_single_quotes)
        elif character == '"':
            self._begin_item()
            self._hold(self._in_json_string)
        else:
            self._begin_item()
            self._hold(self._in_word)
            return at
        return at + 1

    def _in_string(self, text: str, at: int) -> int:
        self._held.append(text[at:])
        self._json.append(_as_json(text[at:])[1:-1])
        return len(text)

    def _in_json_string(self, text: str, at: int) -> int:
        at, value = self._json_string(text, at)
        if value is not None:
            self._json.append(_as_json(value))
            self._complete(value)
        return at

    def _in_single_quotes(self, text: str, at: int) -> int:
        """Read a string as Python has it. Its escapes are those of JSON, and that of the quote."""
        while at < len(text):
            character = text[at]
            at += 1
            if character == "'" and not self._escaped:
                inside = "".join(self._held)
                written = _SINGLE.sub(lambda found: _AS_DOUBLE.get(found[0], found[0]), inside)
                try:
                    value = cast("str", json.loads(f'"{written}"', strict=False))
                    value.encode()
                except ValueError as error:
                    return self._fail(f"a string in single quotes is malformed: {error}")
                self._json.append(_as_json(value))
                self._complete(value)
                return at
            self._escaped = character == "\\" and not self._escaped
            self._held.append(character)
        return at

    def _in_word(self, text: str, at: int) -> int:
        end = (_ROUND_WORD_END if self._in_round else _WORD_END).search(text, at)
        self._held.append(text[at : end.start() if end else len(text)])
        if end is None:
            return len(text)
        self._word()
        return end.start()

    def _after_value(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        if at == len(text):
            return at
        inside = self._open[-1]
        if text[at] == ",":
            self._state = self._at_key if isinstance(inside, dict) else self._at_value
        elif text[at] == (self._closer if isinstance(inside, dict) else "]"):
            self._close()
        else:
            return self._fail(f"a comma or a bracket should be where {text[at]!r} is")
        return at + 1

    def _at_end(self, text: str, at: int) -> int:
        at = _skip_space(text, at)
        return at if at == len(text) else self._fail("there is something after the arguments")

    def _in_invalid(self, text: str, at: int) -> int:
        del at
        return len(text)

    # Steps of the states

    def _begin(self) -> None:
        name = self._called("".join(self._held))
        if not name:
            self._fail("it should begin with call: and a tool's name")
            return
        self._name = name
        self._emit(CallBegin(self._name))
        self._enter(self._arguments)

    def _called(self, written: str) -> str:
        """Return the name of the tool in what a call begins with; empty, if there is none."""
        kind, colon, name = written.partition(":")
        if kind.strip() == "call" and colon:
            return name.strip()
        return written.strip() if written.strip() in self._tools else ""  # without ``call:``

    def _is_tool(self, more: str) -> bool:
        """Return True if what was read, and this, names one of the tools that may be called."""
        return bool(self._tools) and self._called("".join([*self._held, more])) in self._tools

    @property
    def _in_round(self) -> bool:
        """True directly inside the round brackets of the arguments."""
        return self._round and len(self._open) == 1

    @property
    def _closer(self) -> str:
        return ")" if self._in_round else "}"

    @property
    def _colons(self) -> str:
        return ":=" if self._in_round else ":"

    def _enter(self, container: dict[str, Json] | list[Json]) -> None:
        if self._open:
            self._put(container)
        self._open.append(container)
        self._json.append("{" if isinstance(container, dict) else "[")
        self._state = self._at_key if isinstance(container, dict) else self._at_value

    def _close(self) -> None:
        self._json.append("}" if isinstance(self._open.pop(), dict) else "]")
        self._state = self._after_value if self._open else self._at_end

    def _key(self, key: str) -> None:
        self._json.append(("," if self._open[-1] else "") + _as_json(key) + ":")
        self._keys.append(key)

    def _begin_item(self) -> None:
        inside = self._open[-1]
        if isinstance(inside, list) and inside:
            self._json.append(",")

    def _word(self) -> None:
        word = "".join(self._held).strip()
        if self._round and word in _PYTHON:
            self._json.append(_as_json(_PYTHON[word]))
            self._complete(_PYTHON[word])
            return
        number = _NUMBER.fullmatch(word)
        if word in self._words:
            value = self._words[word]
        elif number:
            try:
                value = float(word) if number["fraction"] or number["exponent"] else int(word)
            except ValueError:  # Python reads no int of more than 4300 digits
                value = float("inf")
            if isinstance(value, float) and not isfinite(value):
                self._fail("a number is too large")
                return
        else:
            value = word
        self._json.append(word if number else _as_json(value))
        self._complete(value)

    def _complete(self, value: Json) -> None:
        self._put(value)
        self._state = self._after_value

    def _put(self, value: Json) -> None:
        inside = self._open[-1]
        if isinstance(inside, dict):
            inside[self._keys.pop()] = value
        else:
            inside.append(value)

    def _json_string(self, text: str, at: int) -> tuple[int, str | None]:
        """Read a string in JSON's quotes. Return the index that was reached, and the string if it is complete."""
        inside = _IN_JSON_STRING.match(text, at + self._escaped)
        end = inside.end() if inside else at
        self._escaped = end < len(text) and text[end] == "\\"
        self._held.append(text[at : end + self._escaped])
        if self._escaped or end == len(text):
            return len(text), None
        try:
            value = cast("str", json.loads('"' + "".join(self._held) + '"', strict=False))
            value.encode()  # fails on half a character
        except ValueError as error:
            return self._fail(f"a string in JSON's quotes is malformed: {error}"), None
        return end + 1, value

    def _hold(self, state: _State) -> None:
        self._held.clear()
        self._escaped = False
        self._state = state

    def _emit(self, event: Event | None = None) -> None:
        """Emit the arguments so far, and then an event."""
        if self._json:
            self._out.append(ArgumentsDelta("".join(self._json)))
            self._json.clear()
        if event is not None:
            self._out.append(event)

    def _fail(self, error: str) -> int:
        """Give up on the call, and ignore the rest of it. Return an index after the end of any text."""
        self._error = self._error or error
        self._state = self._in_invalid
        return _EVERYTHING

    def _take_events(self) -> list[Event]:
        self._emit()
        events, self._out = self._out, []
        return events


_EVERYTHING = 1 << 62


def _skip_space(text: str, at: int) -> int:
    if not text[at].isspace():
        return at
    match = _SPACE.match(text, at)
    return match.end() if match else at


_as_json: Callable[[Json], str] = json.JSONEncoder(ensure_ascii=False).encode
