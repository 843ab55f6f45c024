"""What a call or a JSON answer is written of: names and values, as places in a row of tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from training.data.spelling import CALL_END, TURN_END, Spelling

_ENDS = frozenset((CALL_END, TURN_END))


@dataclass(frozen=True)
class Part:
    """An argument's name or a text or number, without what stands around it."""

    start: int
    stop: int
    key: bool


def parts(tokens: Sequence[int], place: int, stop: int, spelling: Spelling, quote: int) -> Iterator[Part]:
    """The parts of the table that begins at ``place`` with a brace. What is cut off is none."""
    depth: list[bool] = []  # whether each is a table, from the outside in
    at_key = False
    while place < stop and tokens[place] not in _ENDS:
        token = tokens[place]
        if token == quote:
            end = _next(tokens, place + 1, stop, {quote})
            if end < stop and end > place + 1:
                yield Part(place + 1, end, at_key)
            place = end + 1
        elif token in {spelling.open, spelling.listed}:
            depth.append(token == spelling.open)
            at_key, place = depth[-1], place + 1
        elif token in {spelling.close, spelling.unlisted}:
            depth, at_key, place = depth[:-1], False, place + 1
        elif token == spelling.comma:
            at_key, place = bool(depth) and depth[-1], place + 1
        elif token == spelling.colon:
            at_key, place = False, place + 1
        elif token == spelling.space:
            place += 1
        else:
            ends = {spelling.colon} if at_key else {spelling.comma, spelling.close, spelling.unlisted}
            end = _next(tokens, place, stop, ends | _ENDS)
            if end < stop:
                yield Part(place, end, at_key)
            place = end


def _next(tokens: Sequence[int], place: int, stop: int, wanted: set[int]) -> int:
    return next((at for at in range(place, stop) if tokens[at] in wanted), stop)
