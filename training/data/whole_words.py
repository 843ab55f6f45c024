"""Words of several tokens, by what the whole of each is.

A small vocabulary writes "beetle" as ``be``, ``et``, ``le``: three pieces that a hundred other words have too. What a
tool is known by is the word and not its pieces. Only where a word ends is it known which one it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from training.data.spelling import Spelling

_SHORTEST = 2  # letters


def whole_words(tokens: Sequence[int], spelling: Spelling) -> list[int]:
    """At the last token of each word its number, and 0 elsewhere.

    Words that differ in case alone have the same number. In a name that is written in one, a capital after a small
    letter begins another word.
    """
    numbers = [0] * len(tokens)
    word = ""
    for place, token in enumerate(tokens):
        word += spelling.piece[token]
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if following is not None and spelling.piece[following] and not _parts(spelling, token, following):
            continue
        if len(word) >= _SHORTEST:
            numbers[place] = zlib.crc32(word.encode()) >> 2 | 1  # of 30 bits, so that it fits beside its sign
        word = ""
    return numbers


def _parts(spelling: Spelling, token: int, following: int) -> bool:
    return spelling.small[token] and spelling.capital[following]
