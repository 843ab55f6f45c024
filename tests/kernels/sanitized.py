"""A program that drives a library with sanitizers through its own doors, and ends badly if they find anything.

Arrays end where the library may read last, as Python is told to take all its memory from malloc, which is watched.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from tests.kernels.made_up_attention import STORED, attend_by_hand, made_up
from tests.kernels.made_up_matrices import library, matrix, product, variants

KINDS = {"F32": 1, "F16": 1, "BF16": 1, "Q8_0": 32, "Q4_0": 32, "INT4": 32, "Q4_1": 32, "Q5_0": 32, "Q5_1": 32}
KINDS |= {"Q4_K": 256, "Q5_K": 256, "Q6_K": 256}


def main(path: str, count: int) -> None:
    loaded, random, done = library(path), np.random.default_rng(7), 0
    for kind, block in KINDS.items():
        for _ in range(count):
            outputs, inputs = int(random.integers(1, 30)), block * int(random.integers(1, 60 if block == 1 else 12))
            rows, off = int(random.integers(1, 17)), int(random.integers(0, 4))
            parts = matrix(kind, outputs, inputs, random)
            x = random.standard_normal((rows, inputs)).astype(np.float32)
            x[random.integers(0, rows), random.integers(0, inputs)] = random.choice([np.nan, np.inf, 3e38, 1e-42])
            first = int(random.integers(0, outputs))
            some = (first, int(random.integers(first, outputs)) + 1)
            for variant, rounds in itertools.product(variants(loaded), (False, True)[: 1 + (block > 1)]):
                product(loaded, variant, kind, parts, x, outputs, some, off=off, rounded=rounds)
                done += 1
    for dtype in STORED:
        for _ in range(count):
            case = made_up(random, dtype, tokens=int(random.choice([1, 3, 16, 20])))
            for variant, apart in itertools.product(variants(loaded), (False, True)):
                attend_by_hand(loaded, variant, case, apart=apart)
                done += 1
    print(done)  # noqa: T201  what it has to say


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
