"""One call as a JSON object, read as it comes: ``{"name": "...", "parameters": {...}}``."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import cast

from langchain_gemma_jax.dialects.events import ArgumentsDelta, CallBegin, CallEnd, Event, Invalid
from langchain_gemma_jax.dialects.messages import MAX_DEPTH, Json

_STRUCTURE = re.compile(r'["{}\[\],:]')
_IN_STRING = re.compile(r'["\\]')
_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}  # raw line ends in strings are common, and no JSON
PARAMETERS = ("parameters", "arguments", "args")  # what models call them


class JsonCallReader:
    """Finds the object's end, passes the parameters on while they come, and checks the whole at the end."""

    def __init__(self) -> None:
        self.over = False  # the object is complete, or cannot be understood
        self._raw: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._token: list[str] | None = None  # a string that is a key or a value of the object itself
        self._key: str | None = None  # whose value is being read; None: a key comes next
        self._name: str | None = None
        self._begun = False
        self._streaming = False
        self._out: list[Event] = []

    @property
    def raw(self) -> str:
        return "".join(self._raw)

    def text(self, text: str, at: int) -> tuple[int, list[Event]]:
        """Read a text from a place on: how far, and what it says."""
        while at < len(text) and not self.over:
            at = self._string(text, at) if self._in_string else self._structure(text, at)
        events, self._out = self._out, []
        return at, events

    def end(self) -> list[Event]:
        """Nothing comes any more."""
        if not self.over:
            self._fail("the call ends before its arguments do")
        events, self._out = self._out, []
        return events

    def _structure(self, text: str, at: int) -> int:
        found = _STRUCTURE.search(text, at)
        self._put(text[at : found.start() if found else len(text)])
        if found is None:
            return len(text)
        character = found[0]
        if character in "{[":
            self._enter(character)
        elif character in "}]":
            self._leave(character)
        else:
            self._put(character)
            if self._depth == 1:
                if character == '"':
                    self._token = []
                elif character == ",":
                    self._key = None
            self._in_string = character == '"'
        return found.end()

    def _string(self, text: str, at: int) -> int:
        if self._escaped:
            self._put(text[at])
            self._escaped = False
            return at + 1
        found = _IN_STRING.search(text, at)
        self._put(text[at : found.end() if found else len(text)].translate(_ESCAPES))
        if found is None:
            return len(text)
        if found[0] == "\\":
            self._escaped = True
        else:
            self._in_string = False
            self._end_of_string()
        return found.end()

    def _end_of_string(self) -> None:
        if self._token is None:
            return
        written, self._token = '"' + "".join(self._token), None
        try:
            value = cast("str", json.loads(written))
        except ValueError as error:
            self._fail(f"it is no JSON: {error}")
            return
        if self._key is None:
            self._key = value
        elif self._key == "name":
            self._name = value

    def _enter(self, bracket: str) -> None:
        if self._depth > MAX_DEPTH:
            self._fail(f"it is nested more than {MAX_DEPTH} levels deep")
            return
        if self._depth == 1 and bracket == "{" and self._key in PARAMETERS and self._name and not self._begun:
            self._out.append(CallBegin(self._name))
            self._begun = self._streaming = True
        self._depth += 1
        self._put(bracket)

    def _leave(self, bracket: str) -> None:
        self._put(bracket)
        self._depth -= 1
        if self._depth == 1:
            self._streaming = False
        elif self._depth == 0:
            self._check()

    def _check(self) -> None:
        """The object is complete: is it a call?"""
        self.over = True
        try:
            name, arguments = _call(strict_json(self.raw))
        except (ValueError, RecursionError) as error:
            self._fail(str(error))
            return
        if self._begun and name != self._name:
            self._fail("it names two tools")
            return
        if not self._begun:
            self._out += [CallBegin(name), ArgumentsDelta(json.dumps(arguments, ensure_ascii=False))]
        self._out.append(CallEnd(arguments))

    def _put(self, text: str) -> None:
        if not text:
            return
        self._raw.append(text)
        if self._token is not None:
            self._token.append(text)
        if self._streaming:
            self._out.append(ArgumentsDelta(text))

    def _fail(self, error: str) -> None:
        self.over = True
        self._out.append(Invalid(self.raw, error, self._name))


def strict_json(text: str) -> Json:
    """The value of a JSON text: every number finite, every name once, every string whole characters.

    Raises:
        ValueError: it is none.
    """
    value = json.loads(text, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_without_twins)
    json.dumps(value, ensure_ascii=False).encode()  # fails on half a character, which JSON can spell
    return cast("Json", value)


def _call(value: Json) -> tuple[str, dict[str, Json]]:
    """The tool's name and the arguments of a call."""
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


def _without_twins(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name is given twice")
    return members
