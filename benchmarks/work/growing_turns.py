"""A conversation of ten growing turns, for this package and for rivals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parents[2] / "build" / "real" / "gemma-3-270m-Q4_K_M.gguf"
PROMPTS = (126, 393, 492, 871, 998, 1505, 1693, 1997, 2620, 2837)  # tokens
ANSWER = 24  # tokens of each turn


def prompts() -> Iterator[list[int]]:
    """Yield the new tokens of each turn; the answers are not known before."""
    random_ids = random.Random(1)
    before = 0
    for count in PROMPTS:
        yield [random_ids.randint(1000, 200_000) for _ in range(count - before)]
        before = count + ANSWER
