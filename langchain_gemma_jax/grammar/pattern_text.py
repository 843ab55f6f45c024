r"""Patterns of schemas, which are JavaScript's regular expressions, translated to Rust's as far as a grammar can.

Validators differ: Python's ``\d`` matches the digits of every script, JavaScript's only 0 to 9; and dots differ in the
line ends that they match. The translation generates only what all of them accept.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_LENGTH = 2000
MAX_NESTING = 32
MAX_COUNT = 1000

ANYTHING = "(?s:.)*"

# The content of brackets for each class: the characters that every validator counts as white space or as a word's.
_CLASSES = {"d": "0-9", "w": "0-9A-Z_a-z", "s": r"\t\n\x0B\x0C\r "}
# The characters that any validator counts as white space.
SPACES = (
    r"\t-\r\x1C-\x20\x{85}\x{A0}\x{1680}\x{180E}\x{2000}-\x{200D}\x{2028}\x{2029}\x{202F}\x{205F}\x{2060}"
    r"\x{3000}\x{FEFF}"
)
# Ranges beyond ASCII without any script's digits.
_NO_DIGITS = r"\x{C0}-\x{65F}\x{1E00}-\x{1FFF}\x{3040}-\x{33FF}\x{4E00}-\x{9FFF}\x{AC00}-\x{D7A3}"
_CLASSES |= {"D": rf"\x00-\x2F:-\x7F{_NO_DIGITS}", "W": r"\x00-\x2F:-@\[-\^`\{-\x7F", "S": f"[^{SPACES}]"}
_ANY_BUT_LINE_ENDS = r"[^\n\r\x{2028}\x{2029}]"
_SIMPLE = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


@dataclass(frozen=True)
class Pattern:
    """A regular expression in Rust's syntax that must match a whole text."""

    regex: str
    least: int  # the fewest characters of such a text
    most: int | None  # the most; None: there is no limit
    size: int  # the approximate number of positions in it, with repetitions written out


_ANYTHING = Pattern(ANYTHING, 0, None, 1)


def exactly(text: str) -> str:
    """Return a regular expression that matches this text alone."""
    return "".join(map(_one, text))


def parse(text: str) -> Pattern:
    """Return the pattern of all texts in which a regular expression has a match.

    Raises:
        ValueError: a grammar cannot promise it. The message says which part.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a pattern of {len(text)} characters is too long: {MAX_LENGTH} at most")
    return _Reader(text).whole()


@dataclass
class _Reader:
    text: str
    at: int = 0
    nesting: int = 0

    def whole(self) -> Pattern:
        options: list[Pattern] = []
        while True:
            begins = self._take("^")
            row = self._row()
            ends = self._take("$")
            parts = [*([] if begins else [_ANYTHING]), row, *([] if ends else [_ANYTHING])]
            options.append(_row_of(parts))
            if not self._take("|"):
                break
        if self.at < len(self.text):
            raise self._error(f"{self.text[self.at]!r}, which has no place there,")
        return options[0] if len(options) == 1 else _any_of(options)

    def _row(self) -> Pattern:
        items: list[Pattern] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.text[self.at] == "$" and self.nesting == 0:
                break
            items.append(self._counted(self._item()))
        return _row_of(items)

    def _item(self) -> Pattern:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return _character(self._class())
            case ".":
                return _character(_ANY_BUT_LINE_ENDS)
            case "\\":
                found = self._escape()
                return _character(_one(found) if len(found) == 1 else f"[{found}]")
            case "^" | "$":
                raise self._error(f"{character!r} in its midst")
            case "*" | "+" | "?":
                raise self._error(f"{character!r} after nothing")
        return _character(_one(character))

    def _group(self) -> Pattern:
        if self._take("?") and not self._take(":"):
            named = self._take("P<") or (self._take("<") and not self._peek("=", "!"))
            if not named:
                raise self._error("a group that looks ahead or back, or changes the rules,")
            self._until(">")
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self._error(f"more than {MAX_NESTING} groups inside each other")
        options = [self._row()]
        while self._take("|"):
            options.append(self._row())
        if not self._take(")"):
            raise self._error("a group that is not closed")
        self.nesting -= 1
        return _any_of(options)

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
        self._take("?")  # a lazy quantifier matches the same texts
        if self._peek("+", "*", "?") or self._braces() is not None:
            raise self._error("a quantifier after a quantifier")
        counted = f"{{{low},{'' if high < 0 else high}}}"
        endless = item.most is None or (high < 0 and item.most > 0)
        most = 0 if high == 0 else None if endless else high * (item.most or 0)
        return Pattern(f"{item.regex}{counted}", low * item.least, most, item.size * max(1, low + 1, high))

    def _braces(self) -> tuple[int, int] | None:
        """Read ``{2}``, ``{2,}`` or ``{2,5}``. Return None if there is no brace, or one that stands for itself."""
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

    def _escape(self) -> str:
        """Read what follows a backslash. Return one character, or the content of brackets for a class."""
        character = self._next("a backslash at its end")
        if character in _CLASSES:
            return _CLASSES[character]
        if character in _SIMPLE and not (character == "0" and self._peek(*"0123456789")):
            return _SIMPLE[character]
        if character in "xu":
            return self._code(character)
        if character.isalnum():
            raise self._error(f"\\{character}")
        return character

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

    def _class(self) -> str:
        negated = self._take("^")
        members = ""
        named: list[str] = []
        while not self._peek("]"):
            if self._peek("[:"):
                raise self._error("a class of another kind")
            low = self._member()
            if self._peek("-") and not self._peek("-]"):
                if low in _CLASSES:
                    raise self._error("a range that begins with a class")
                self._take("-")
                high = self._member()
                if high in _CLASSES or ord(high[-1]) < ord(low[-1]):
                    raise self._error("a range that falls")
                members += f"{_one(low[-1])}-{_one(high[-1])}"
            elif low in _CLASSES:
                named.append(low)
            else:
                members += _one(low[-1])
        self._take("]")
        if not members and not named:
            raise self._error("a class of no character")
        if not negated:
            return f"[{members}{''.join(_CLASSES[name] for name in named)}]"
        # Characters that are in none of the classes for any validator.
        outside = "".join(f"&&[{_CLASSES[name.swapcase()]}]" for name in named)
        others = f"[^{members}]" if members else r"[\x00-\x{10FFFF}]"
        return f"[{others}{outside}]" if outside else others

    def _member(self) -> str:
        """Return a member of a class: a character after a space, or the name of a class."""
        character = self._next("a class that is not closed")
        if character != "\\":
            return f" {character}"
        if self._take("b"):
            return " \b"
        if (name := self.text[self.at : self.at + 1]) in _CLASSES and name:
            self.at += 1
            return name
        return f" {self._escape()}"

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


def _one(character: str) -> str:
    return character if character in _PLAIN else f"\\x{{{ord(character):X}}}"


def _any_of(options: list[Pattern]) -> Pattern:
    highs = [option.most for option in options if option.most is not None]
    return Pattern(
        f"(?:{'|'.join(option.regex for option in options)})",
        min(option.least for option in options),
        max(highs) if len(highs) == len(options) else None,
        sum(option.size for option in options),
    )


def _row_of(items: list[Pattern]) -> Pattern:
    highs = [item.most for item in items if item.most is not None]
    return Pattern(
        "".join(item.regex for item in items),
        sum(item.least for item in items),
        sum(highs) if len(highs) == len(items) else None,
        sum(item.size for item in items),
    )


def _character(regex: str) -> Pattern:
    return Pattern(regex, 1, 1, 1)


def _is_count(text: str) -> bool:
    return 0 < len(text) <= 6 and text.isascii() and text.isdigit()
