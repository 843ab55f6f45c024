"""What is known of tokens by how they are spelled, and the dialect's own tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.tokenizer import CONTROL

TOOL, TOOL_END, TURN, TURN_END, CALL, CALL_END, RESPONSE, RESPONSE_END, QUOTE = map(
    CONTROL.index,
    (
        "<|tool>",
        "<tool|>",
        "<|turn>",
        "<turn|>",
        "<|tool_call>",
        "<tool_call|>",
        "<|tool_response>",
        "<tool_response|>",
        '<|"|>',
    ),
)

_LETTERS, _DIGITS = 1, 2
_SPACES = frozenset("ĠĊ")  # a byte-level vocabulary's names of a space and a new line


@dataclass(frozen=True)
class Spelling:
    """Tokens by number."""

    piece: Sequence[str]  # of a word, in small letters; "" where it is none
    small: Sequence[bool]  # whether it ends with a small letter
    capital: Sequence[bool]  # whether it begins with a capital
    kind: Sequence[int]  # letters, digits, or 0: those of one kind side by side are one word or one number
    colon: int
    comma: int
    open: int
    close: int
    listed: int
    unlisted: int
    space: int
    mark: int  # a text's in JSON
    user: tuple[int, ...]
    system: tuple[int, ...]
    model: tuple[int, ...]

    @classmethod
    def of(cls, names: Sequence[str], encode: Callable[[str], list[int]]) -> Spelling:
        """Of a vocabulary, as its tokenizer names it."""
        plain = ["" if index < len(CONTROL) else name for index, name in enumerate(names)]
        colon, comma, opening, closing, listed, unlisted, space, mark = (encode(mark)[0] for mark in ':,{}[] "')
        return cls(
            [_folded(name) if _lettered(name) else "" for name in plain],
            [_lettered(name) and name[-1].islower() for name in plain],
            [_lettered(name) and name.isascii() and name[0].isupper() for name in plain],
            [_DIGITS if name.isdigit() else _LETTERS if _lettered(name) else 0 for name in plain],
            colon,
            comma,
            opening,
            closing,
            listed,
            unlisted,
            space,
            mark,
            *(tuple(encode(f"{role}\n")) for role in ("user", "system", "model")),
        )


def _lettered(name: str) -> bool:
    return name.isalpha() and not _SPACES & set(name)


def _folded(name: str) -> str:
    """In lower case; what is not ASCII are names of bytes, and no letters."""
    return name.lower() if name.isascii() else name
