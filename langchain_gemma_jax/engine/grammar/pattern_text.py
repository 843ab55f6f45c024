r"""Patterns as schemas write them: JavaScript's regular expressions, as far as they can be promised.

Validators differ. Python's ``\d`` takes the digits of every script, JavaScript's those of ours; a dot
takes other line ends. What is made here is what all of them take.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from langchain_gemma_jax.engine.grammar import characters
from langchain_gemma_jax.engine.grammar.characters import EVERY, Characters
from langchain_gemma_jax.engine.grammar.pattern import ANYTHING, AnyOf, Chars, Pattern, Row, Times

MAX_LENGTH = 2000
MAX_NESTING = 32
MAX_COUNT = 1000

_DIGITS = characters.of("0123456789")
_WORD = characters.union([(48, 57), (65, 90), (95, 95), (97, 122)])
_SPACE = characters.of("\t\n\v\f\r ")  # of all that some validator takes for white space, what every one does
SPACES = characters.union(  # and what any of them does
    [
        *((9, 13), (28, 32), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x180E, 0x180E), (0x2000, 0x200D)),
        *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x2060), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ]
)
_ASCII = ((0, 127),)
# Letters among which no script's digits are: beyond ASCII, what is surely no digit.
_NO_DIGITS = ((0xC0, 0x65F), (0x1E00, 0x1FFF), (0x3040, 0x33FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3))
_CLASSES = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "D": characters.union([*characters.without(_ASCII, _DIGITS), *_NO_DIGITS]),
    "W": characters.without(_ASCII, _WORD),
    "S": characters.without(EVERY, SPACES),
}
_LINE_ENDS = characters.of("\n\r\u2028\u2029")
_SIMPLE = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}


@lru_cache(maxsize=256)
def parse(text: str) -> Pattern:
    """The pattern of all texts in which this one is found.

    Raises:
        ValueError: it cannot be promised. The message says what in it.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a pattern of {len(text)} characters is too long: {MAX_LENGTH} at most")
    return _Reader(text).whole()


@dataclass
class _Reader:
    text: str
    at: int = 0
    nesting: int = 0
    negations: Characters = EVERY  # what every validator finds outside of the classes in the present brackets

    def whole(self) -> Pattern:
        options: list[Pattern] = []
        while True:
            begins = self._take("^")
            row = self._row()
            ends = self._take("$")
            options.append(Row((*(() if begins else (ANYTHING,)), *row, *(() if ends else (ANYTHING,)))))
            if not self._take("|"):
                break
        if self.at < len(self.text):
            raise self._error(f"{self.text[self.at]!r}, which has no place there,")
        return options[0] if len(options) == 1 else AnyOf(tuple(options))

    def _row(self) -> list[Pattern]:
        items: list[Pattern] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$" and self.nesting == 0:
                break
            items.append(self._counted(self._item()))
        return items

    def _item(self) -> Pattern:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return Chars(self._class())
            case ".":
                return Chars(characters.without(EVERY, _LINE_ENDS))
            case "\\":
                return Chars(self._escape())
            case "^" | "$":
                raise self._error(f"{character!r} in its midst")
            case "*" | "+" | "?":
                raise self._error(f"{character!r} behind nothing")
        return Chars(_one(character))

    def _group(self) -> Pattern:
        if self._take("?") and not self._take(":"):
            named = self._take("P<") or (self._take("<") and not self._peek("=", "!"))
            if not named:
                raise self._error("a group that looks ahead or back, or changes the rules,")
            self._until(">")
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self._error(f"more than {MAX_NESTING} groups inside each other")
        options: list[Pattern] = [Row(tuple(self._row()))]
        while self._take("|"):
            options.append(Row(tuple(self._row())))
        if not self._take(")"):
            raise self._error("a group that is not closed")
        self.nesting -= 1
        return options[0] if len(options) == 1 else AnyOf(tuple(options))

    def _counted(self, item: Pattern) -> Pattern:
        low, high = 1, 1
        if self._take("*"):
            low, high = 0, -1
        elif self._take("+"):
            low, high = 1, -1
        elif self._take("?"):
            low, high = 0, 1
        elif (braces := self._braces()) is not None:
            low, high = braces
        else:
            return item
        self._take("?")  # as few as possible: the same texts
        if self._peek("+", "*", "?") or self._braces() is not None:
            raise self._error("a quantifier behind a quantifier")
        return Times(item, low, None if high < 0 else high)

    def _braces(self) -> tuple[int, int] | None:
        """``{2}``, ``{2,}`` or ``{2,5}``; None: a brace that means itself, or something else."""
        end = self.text.find("}", self.at)
        if not self._peek("{") or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not _is_count(low) or not (high == "" or _is_count(high)):
            return None
        self.at = end + 1
        least = int(low)
        most = least if not comma else int(high) if high else -1
        if max(least, most) > MAX_COUNT:
            raise self._error(f"a count of more than {MAX_COUNT}")
        if 0 <= most < least:
            raise self._error("a count that falls")
        return least, most

    def _escape(self) -> Characters:
        character = self._next("a backslash at its end")
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _SIMPLE and not (character == "0" and self._peek(*"0123456789")):
            return _one(_SIMPLE[character])
        if character in "xu":
            return _one(self._code(character))
        if character.isalnum():
            raise self._error(f"\\{character}")
        return _one(character)

    def _code(self, kind: str) -> str:
        if kind == "u" and self._take("{"):
            digits = self._until("}")
        else:
            count = 2 if kind == "x" else 4
            digits = self.text[self.at : self.at + count]
            self.at += count
            if len(digits) < count:
                digits = ""
        if not digits or not all(digit in "0123456789abcdefABCDEF" for digit in digits) or len(digits) > 6:
            raise self._error(f"\\{kind} without its digits")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise self._error(f"a character that is none, {code:#x},")
        return chr(code)

    def _class(self) -> Characters:
        negated = self._take("^")
        positive: list[tuple[int, int]] = []
        others = EVERY  # what is in none of the members, whoever validates
        while not self._peek("]"):
            if self._peek("[:"):
                raise self._error("a class of another kind")
            low, members = self._member()
            if self._peek("-") and not self._peek("-]"):
                if low is None:
                    raise self._error("a range that begins with a class")
                self._take("-")
                high, _ = self._member()
                if high is None or high < low:
                    raise self._error("a range that falls")
                members = characters.common(((low, high),), EVERY)
                others = characters.without(others, members)
            elif low is not None:
                others = characters.without(others, members)
            positive.extend(members)
        self._take("]")
        if not positive:
            raise self._error("a class of no character")
        found = characters.common(others, self.negations) if negated else characters.union(positive)
        self.negations = EVERY
        if not found:
            raise self._error("a class of no character")
        return found

    def _member(self) -> tuple[int | None, Characters]:
        """A character, or the name of a class."""
        character = self._next("a class that is not closed")
        if character != "\\":
            return ord(character), _one(character)
        if self._take("b"):
            return 8, _one("\b")
        if (name := self.text[self.at : self.at + 1]) in _CLASSES and name:
            self.at += 1
            self.negations = characters.common(self.negations, _CLASSES[name.swapcase()])
            return None, _CLASSES[name]
        found = self._escape()
        return found[0][0], found

    def _next(self, missing: str = "an end where more should be") -> str:
        if self.at >= len(self.text):
            raise self._error(missing)
        self.at += 1
        character = self.text[self.at - 1]
        if 0xD800 <= ord(character) <= 0xDFFF:
            raise self._error("half a character")
        return character

    def _peek(self, *wanted: str) -> bool:
        return self.text.startswith(wanted, self.at)

    def _take(self, wanted: str) -> bool:
        if not self._peek(wanted):
            return False
        self.at += len(wanted)
        return True

    def _until(self, end: str) -> str:
        place = self.text.find(end, self.at)
        if place < 0:
            raise self._error(f"no {end!r}")
        taken, self.at = self.text[self.at : place], place + len(end)
        return taken

    def _error(self, what: str) -> ValueError:
        shown = self.text if len(self.text) <= 80 else f"{self.text[:80]}..."
        return ValueError(f"the pattern {shown!r} has {what} at character {self.at}")


def _one(character: str) -> Characters:
    return ((ord(character), ord(character)),)


def _is_count(text: str) -> bool:
    return 0 < len(text) <= 6 and text.isascii() and text.isdigit()
