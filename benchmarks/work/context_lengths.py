"""Work that grows: one conversation that is read on and on, and at some lengths, what a token costs behind it.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.running.serve import Answer
from benchmarks.work.conversation import Talker
from benchmarks.work.long_context import endless

FEW = 8  # tokens decoded at each length
ROOM = 64  # of a context, beside the longest length


def time_lengths(talker: Talker, text: Sequence[int], lengths: Sequence[int], held: Callable[[], int]) -> Answer:
    """Seconds until each length is read from the beginning, seconds of a token there, and the bytes that are held.

    ``held`` gives what the engine holds of the conversation. ``resident`` is what the process has beyond what it had
    before the first token.
    """
    talker.forget()
    words, context, spent = endless(text, 0), list[int](), 0.0
    before, found = resident(), dict[str, Answer]()
    for length in lengths:
        context += [next(words) for _ in range(length - len(context))]
        began, ends, tokens = time.perf_counter(), list[float](), list[int]()
        for token in talker.answer(tuple(context), 1 + FEW):
            ends.append(time.perf_counter())
            tokens.append(token)
        spent += ends[0] - began
        found[str(length)] = {
            "read": spent,
            "token": (ends[-1] - ends[0]) / FEW,
            "held": held(),
            "resident": resident() - before,
        }
        context += tokens[:-1]
    talker.forget()
    return found


def resident() -> int:
    """Return the bytes that this process has in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * 4096
