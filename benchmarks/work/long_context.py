"""Work on long contexts: a long prompt, a tool's result behind much that was said, and tokens behind very much.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from benchmarks.running.serve import Answer
from benchmarks.work.conversation import Talker

SAID, RESULT = 2000, 50  # tokens before a tool's result, and of it
LONG, VERY_LONG = 4096, 16384  # tokens of prompts
FEW = 16  # tokens decoded behind the longest
CAPACITY = VERY_LONG + 64  # of a context that has room for all of it


def time_long(talker: Talker, number: int, text: Sequence[int]) -> Answer:
    """Seconds for a result behind what was said, for a long prompt, and for a token behind a very long one.

    ``number``: another one begins elsewhere in the text, so that no engine has seen it.
    """
    words = endless(text, number)
    talker.forget()
    said = [next(words) for _ in range(SAID)]
    said.extend(talker.answer(tuple(said), 1))
    said += [next(words) for _ in range(RESULT)]
    result, _ = timed(talker, said, 1)
    talker.forget()
    words = endless(text, number + 1000)
    prompt, first = timed(talker, [next(words) for _ in range(LONG)], 1)
    talker.forget()
    words = endless(text, number + 2000)
    context = [next(words) for _ in range(VERY_LONG)]
    began = time.perf_counter()
    ends, tokens = [], []
    for token in talker.answer(tuple(context), 1 + FEW):
        ends.append(time.perf_counter())
        tokens.append(token)
    if len(tokens) != 1 + FEW:
        raise RuntimeError(f"Expected {1 + FEW} tokens behind {VERY_LONG}, found {len(tokens)}.")
    talker.forget()
    return {
        "result": result,
        "prompt": prompt,
        "very long prompt": ends[0] - began,
        "behind": (ends[-1] - ends[0]) / FEW,
        "tokens": [*first, *tokens],
    }


def endless(text: Sequence[int], number: int) -> Iterator[int]:
    """The text again and again: the token it begins with, then its words from some place on."""
    yield text[0]
    rest = text[1:]
    at = 37 * number
    while True:
        yield rest[at % len(rest)]
        at += 1


def timed(talker: Talker, context: Sequence[int], count: int) -> tuple[float, list[int]]:
    """Seconds of an answer, and its tokens."""
    began = time.perf_counter()
    found = list(talker.answer(tuple(context), count))
    return time.perf_counter() - began, found
