"""Damaged files are opened, or are a typed error, soon and for little memory."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterable

from langchain_gemma_jax.errors import GemmaJaxError

MOST_BYTES, MOST_WORDS = 64 << 20, 2000  # the last: characters of what is said


def check_damaged(seeds: Iterable[int], damage: Callable[[random.Random], None], opened: Callable[[], object]) -> None:
    """Write a damaged file by each seed, and open it."""
    tracemalloc.start()
    try:
        for seed in seeds:
            damage(random.Random(seed))
            tracemalloc.reset_peak()
            said, before = "", tracemalloc.get_traced_memory()[0]
            try:
                opened()
            except GemmaJaxError as error:
                said = str(error)
            assert tracemalloc.get_traced_memory()[1] - before < MOST_BYTES, seed
            assert len(said) < MOST_WORDS, seed
    finally:
        tracemalloc.stop()
