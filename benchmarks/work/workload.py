"""The work of every engine: the same prompt, the same number of tokens, the same room for them.

Read in environments that have neither JAX nor this package: the standard library only.
"""

from __future__ import annotations

import random

MODEL = "gemma-3-270m"
DTYPES = ("bfloat16", "float32")

PROMPT, LONG_PROMPT = 256, 512  # tokens read
DECODE = 32  # tokens decoded behind the shorter prompt
CAPACITY = 512  # tokens that a cache has room for
READS = 2  # of each prompt in a round
VOCABULARY = 262144


def prompt_ids() -> list[int]:
    """The longer prompt; the shorter one is its beginning. No id is one that a library could take for padding."""
    chosen = random.Random(0)
    return [2, *(chosen.randrange(1000, VOCABULARY - 1000) for _ in range(LONG_PROMPT - 1))]
