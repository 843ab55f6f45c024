"""Regular expressions as values, and how llguidance reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from langchain_gemma_jax.engine.grammar import characters
from langchain_gemma_jax.engine.grammar.characters import EVERY, Characters


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    characters: Characters


@dataclass(frozen=True)
class Row:
    """These, one behind the other. An empty row is the empty text."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class AnyOf:
    """One of these; there is one at least."""

    options: tuple[Pattern, ...]


@dataclass(frozen=True)
class Times:
    """The same again, from ``low`` to ``high`` times."""

    item: Pattern
    low: int = 0
    high: int | None = None


Pattern: TypeAlias = Chars | Row | AnyOf | Times

ANYTHING = Times(Chars(EVERY))
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")

# JSON's escapes. A slash needs none.
_SHORT = {'"': '"', "\\": "\\", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_ESCAPES = {ord(c): f"\\{letter}" for c, letter in _SHORT.items()}
ESCAPES = {code: f"\\u{code:04x}" for code in range(32)} | _ESCAPES
"""The characters that JSON writes otherwise in strings, and how."""
ESCAPED: Characters = characters.union((code, code) for code in ESCAPES)


def exactly(text: str) -> Pattern:
    """This text."""
    return Row(tuple(Chars(((ord(c), ord(c)),)) for c in text))


def one_of(text: str) -> Pattern:
    """One of the characters of a text."""
    return Chars(characters.of(text))


def optional(item: Pattern) -> Pattern:
    """This, or nothing."""
    return Times(item, 0, 1)


@lru_cache(maxsize=4096)
def in_json(pattern: Pattern) -> Pattern:
    """The pattern of the same text inside JSON's quotes."""
    match pattern:
        case Chars(found):
            plain = characters.without(found, ESCAPED)
            options: list[Pattern] = [Chars(plain)] if plain else []
            options += [
                exactly(ESCAPES[code])
                for low, high in characters.common(found, ESCAPED)
                for code in range(low, high + 1)
            ]
            return AnyOf(tuple(options)) if len(options) != 1 else options[0]
        case Row(items):
            return Row(tuple(map(in_json, items)))
        case AnyOf(options_):
            return AnyOf(tuple(map(in_json, options_)))
        case Times(item, low, high):
            return Times(in_json(item), low, high)


def length(pattern: Pattern) -> tuple[int, int | None]:
    """How many characters it has, at least and at most. None: there is no most."""
    match pattern:
        case Chars():
            return 1, 1
        case Row(items):
            sizes = [length(item) for item in items]
            return sum(low for low, _ in sizes), _sum(high for _, high in sizes)
        case AnyOf(options):
            sizes = [length(option) for option in options]
            highs = [high for _, high in sizes if high is not None]
            return min(low for low, _ in sizes), max(highs) if len(highs) == len(sizes) else None
        case Times(item, low, high):
            least, most = length(item)
            return low * least, 0 if high == 0 or most == 0 else None if high is None or most is None else high * most


def _sum(sizes: Iterable[int | None]) -> int | None:
    total = 0
    for size in sizes:
        if size is None:
            return None
        total += size
    return total


def regex(pattern: Pattern) -> str:
    """In the syntax that llguidance knows, which is that of Rust's ``regex``."""
    match pattern:
        case Chars(found):
            return f"[{''.join(_span(low, high) for low, high in found)}]" if found else r"[a&&b]"
        case Row(items):
            return "".join(map(regex, items))
        case AnyOf(options):
            return f"(?:{'|'.join(map(regex, options))})"
        case Times(item, low, high):
            inner = regex(item) if isinstance(item, Chars) else f"(?:{regex(item)})"
            return inner + _count(low, high)


def _span(low: int, high: int) -> str:
    return _character(low) if low == high else f"{_character(low)}-{_character(high)}"


def _character(code: int) -> str:
    return chr(code) if chr(code) in _PLAIN else f"\\x{{{code:X}}}"


def _count(low: int, high: int | None) -> str:
    match low, high:
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case 0, 1:
            return "?"
        case _:
            return f"{{{low},{'' if high is None else high}}}"
