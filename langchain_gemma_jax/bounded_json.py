"""JSON of strangers, read in pieces: nothing is made before it is counted, and no step keeps other threads waiting.

``json.loads`` reads 16 MiB in one go, in which no other thread of Python runs: up to four seconds where it makes five
million lists. Here the text is looked through first, a window at a time, and refused if it holds more than it may.
Strings of some length are read apart, a window at a time too; what is left is small enough for one go.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from json import decoder
from typing import Any

from langchain_gemma_jax.stopping import check

MOST_MARKS = 100_000  # of commas, colons and opening brackets: of values, about
WINDOW = 1 << 16  # bytes that are looked at in one go
_SHORT = 32  # bytes of a string that is left to ``json``
_MOST_OF_WIDE = 1 << 22  # characters of a text that takes up to four bytes for each
_scanned: Callable[[str, int], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]
_INSIDE = re.compile(rb'[^"\\]*+(?:\\(?:[^u]|u[0-9a-fA-F]{4})[^"\\]*+)*+', re.DOTALL)
_NAMES = re.compile(rb"[ \t\r\n]*+:")  # behind a string, which is the name of a member then
_LONG_NUMBER = re.compile(rb"[0-9]{4000}")
_MOST_OF_NAMES = 1 << 20  # bytes of names that are not short


class TooManyValuesError(ValueError):
    """The text holds more values than it may."""


def bounded_loads(data: bytes | str, most_marks: int = MOST_MARKS) -> Any:
    """Return what JSON says.

    Raises:
        TooManyValuesError: it has too many. ValueError, RecursionError: it is not JSON. StoppedError: the call ended.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    data = data.removeprefix(codecs.BOM_UTF8)
    kept: list[bytes] = []
    texts: list[str] = []
    at = done = marks = names = 0
    while True:
        quote = data.find(b'"', at)
        marks += _marks(data, at, len(data) if quote < 0 else quote, most_marks - marks)
        if quote < 0:
            break
        at = _end_of_string(data, quote + 1)
        if at - quote <= _SHORT:
            continue
        if _NAMES.match(data, at):
            names += at - quote
            if names > _MOST_OF_NAMES:
                raise TooManyValuesError("its members have names that are too long")
        else:
            texts.append(_text(data, quote + 1, at - 1))
            kept += (data[done:quote], b"NaN")  # which JSON does not have, so that it stands for nothing else
            done = at
    if not texts:
        return json.loads(data, parse_constant=_refuse)
    kept.append(data[done:])
    following = iter(texts)
    return json.loads(b"".join(kept), parse_constant=lambda _: next(following))


def _marks(data: bytes, start: int, end: int, room: int) -> int:
    """Return how many values begin between two strings, about.

    Raises:
        TooManyValuesError: more than there is room for. ValueError: there is a constant that JSON does not have.
    """
    found = 0
    for at in range(start, end, WINDOW):
        window = data[at : min(at + WINDOW, end)]
        if b"N" in window or b"I" in window:
            raise ValueError("NaN and Infinity are not JSON")
        if len(window) > 4000 and _LONG_NUMBER.search(window):
            raise ValueError("a number has too many digits")
        found += sum(map(window.count, (b",", b":", b"[", b"{")))
        if found > room:
            raise TooManyValuesError("it holds too many values")
        if end - start > WINDOW:
            check()
    return found


def _end_of_string(data: bytes, start: int) -> int:
    """Return where a string's closing quote ends.

    Raises:
        ValueError: it has none, or an escape that is none.
    """
    *_, (_, end) = _windows(data, start, len(data))
    if data[end : end + 1] != b'"':
        raise ValueError(f"a string that begins at {start - 1} does not end, or has an escape that is none: at {end}")
    return end + 1


def _windows(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Give the places of a string's inside in pieces that cut no escape, up to its end."""
    while True:
        match = _INSIDE.match(data, start, min(start + WINDOW, end))
        upto = start if match is None else match.end()
        yield start, upto
        if upto in {start, end} or data[upto : upto + 1] == b'"':
            return
        start = upto
        check()


def _text(data: bytes, start: int, end: int) -> str:
    utf8 = codecs.getincrementaldecoder("utf-8")("surrogatepass")
    parts: list[str] = []
    length, wide = 0, False
    for begins, ends in _windows(data, start, end):
        part = utf8.decode(data[begins:ends], final=ends == end)
        text, _ = _scanned(f'{part}"', 0)
        if parts and text and "\udc00" <= text[0] <= "\udfff" and "\ud800" <= parts[-1][-1:] <= "\udbff":
            pair = parts[-1][-1] + text[0]  # one character, in two escapes
            parts[-1] = parts[-1][:-1] + pair.encode("utf-16", "surrogatepass").decode("utf-16")
            text = text[1:]
        parts.append(text)
        length, wide = length + len(text), wide or not text.isascii()
        if wide and length > _MOST_OF_WIDE:
            raise TooManyValuesError("a text in it is too long")
    return "".join(parts)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
