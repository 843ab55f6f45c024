"""A reader of one call as a JSON object, while it comes: ``{"name": "...", "parameters": {...}}``."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import cast

from langchain_gemma_jax.dialects.conversation.messages import MAX_DEPTH
from langchain_gemma_jax.dialects.conversation.output_events import ArgumentsDelta, CallBegin, CallEnd, Event, Invalid
from langchain_gemma_jax.grammar.json_value import Json

PARAMETERS = ("parameters", "arguments", "args")  # the keys that models use

_STRUCTURE = re.compile(r'["{}\[\],]')
_DEEPER = re.compile(r'["{}\[\]]')  # inside values, commas do not matter
_IN_STRING = re.compile(r'(?:[^"\\]++|\\[^\x00-\x1f])*+')  # up to the string's end, or to a backslash at the text's end
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}  # models often write line ends in strings: invalid JSON


class JsonCallReader:
    """Reads one call: emits its parameters while they come, and checks the whole object at its end."""

    def __init__(self) -> None:
        self.over = False  # the object is complete, or cannot be parsed
        self._raw: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False  # the text so far ended with a backslash
        self._token: list[str] | None = None  # a string that is a key or a value of the object itself
        self._key: str | None = None  # the key whose value is being read; None: a key comes next
        self._keys: set[str] = set()  # of the object itself
        self._name: str | None = None
        self._begun = False
        self._streaming = False
        self._out: list[Event] = []

    def text(self, text: str, at: int) -> tuple[int, list[Event]]:
        """Read a text from an index on. Return the index that was reached, and the events."""
        start = at  # of what is not kept yet
        while at < len(text) and not self.over:
            if self._in_string:
                start, at = self._string(text, start, at)
            else:
                start, at = self._structure(text, start, at)
        self._keep(text[start:at])
        return at, self._take_events()

    def end(self) -> list[Event]:
        """End the call because the output is over, and return its last events."""
        if not self.over:
            self._fail("the call ends before its arguments do", unfinished=True)
        return self._take_events()

    # Both of these take two indices, up to which the text is kept and up to which it is read, and return new ones.

    def _structure(self, text: str, start: int, at: int) -> tuple[int, int]:
        found = (_STRUCTURE if self._depth == 1 else _DEEPER).search(text, at)
        if found is None:
            return start, len(text)
        character, at = found[0], found.end()
        if character == '"':
            self._in_string = True
            if self._depth == 1:
                self._keep(text[start : at - 1])
                start, self._token = at - 1, []
        elif character == ",":
            self._key = None
        elif character in "{[":
            if self._depth == 1 and character == "{" and self._key in PARAMETERS and self._name and not self._begun:
                self._keep(text[start : at - 1])
                self._out.append(CallBegin(self._name))
                start, self._begun, self._streaming = at - 1, True, True
            self._depth += 1
            if self._depth > MAX_DEPTH + 1:
                self._keep(text[start:at])
                start = at
                self._fail(f"it is nested more than {MAX_DEPTH} levels deep")
        else:
            self._depth -= 1
            if self._depth <= 1:
                self._keep(text[start:at])
                start, self._streaming = at, False
            if self._depth == 0:
                self._check()
        return start, at

    def _string(self, text: str, start: int, at: int) -> tuple[int, int]:
        if self._escaped:
            self._escaped = False
            if _CONTROL.match(text, at):
                self._fail("it is no JSON: a backslash is before a line end")
                return start, at
            at += 1
        inside = _IN_STRING.match(text, at)
        end = inside.end() if inside else at
        if _CONTROL.search(text, at, end):
            self._keep(text[start:at])
            self._keep(text[at:end].translate(_ESCAPES))
            start = end
        if end == len(text):
            return start, end
        if text[end] == "\\":
            self._escaped = True
            if end + 1 < len(text):  # a control character follows, which the pattern did not take
                self._keep(text[start : end + 1])
                return end + 1, end + 1
            return start, end + 1
        self._in_string = False
        if self._token is not None:
            self._keep(text[start : end + 1])
            start = end + 1
            self._end_of_token("".join(self._token))
            self._token = None
        return start, end + 1

    def _end_of_token(self, written: str) -> None:
        try:
            value = cast("str", json.loads(written))
        except ValueError as error:
            self._fail(f"it is no JSON: {error}")
            return
        if self._key is None:
            self._key = value
            if value in self._keys:
                self._fail(f"the name {value!r} is given twice")
            self._keys.add(value)
        elif self._key == "name":
            self._name = value

    def _check(self) -> None:
        """Check that the complete object is a call, and emit its end."""
        self.over = True
        try:
            name, arguments = _call(strict_json("".join(self._raw)))
        except (ValueError, RecursionError) as error:
            self._fail(str(error))
            return
        if not self._begun:
            self._out += [CallBegin(name), ArgumentsDelta(json.dumps(arguments, ensure_ascii=False))]
        self._out.append(CallEnd(arguments))

    def _keep(self, text: str) -> None:
        if not text:
            return
        self._raw.append(text)
        if self._token is not None:
            self._token.append(text)
        if self._streaming:
            self._out.append(ArgumentsDelta(text))

    def _fail(self, error: str, *, unfinished: bool = False) -> None:
        self.over = True
        self._out.append(Invalid("".join(self._raw), error, self._name, unfinished))

    def _take_events(self) -> list[Event]:
        events, self._out = self._out, []
        return events


def strict_json(text: str) -> Json:
    """Return the value of a JSON text. Numbers must be finite, and strings must not have half characters.

    If an object has a name twice, the last value counts.

    Raises:
        ValueError: the text is no such JSON.
    """
    value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    json.dumps(value, ensure_ascii=False).encode()  # fails on half a character, which JSON can spell
    return cast("Json", value)


def _call(value: Json) -> tuple[str, dict[str, Json]]:
    """Return the tool's name and the arguments of a call."""
    if not isinstance(value, dict):
        raise ValueError("a call is an object")  # noqa: TRY004  the caller wants one kind of error
    name = value.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("there is no tool's name")
    arguments = next((value[key] for key in PARAMETERS if key in value), None)
    if isinstance(arguments, str):  # JSON in JSON
        arguments = strict_json(arguments)
    if arguments is None:
        return name, {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not an object")  # noqa: TRY004
    return name, arguments


def _finite(number: str) -> float:
    value = float(number)
    if not isfinite(value):
        raise ValueError(f"{number[:40]} is not a number that JSON can hold")
    return value
