"""The cost of a block of JAX code, and which line it is: python examples/guard.py.

The four badly written agents of examples/failure_modes/ show each guard beside the same agent on ``ChatGemmaJax``.
"""

from __future__ import annotations

import jax
import numpy as np

from langchain_gemma_jax import guard


def main() -> None:
    """Score conversations that grow, carelessly and carefully, with a guard around each."""
    score = jax.jit(lambda words: (words * 2.0).sum())
    turns = [np.ones(length, np.float32) for length in (10, 20, 30)]

    with guard(recompile="callback", transfer="callback", app="careless", on_trip=print) as careless:
        for turn in turns:
            score(turn)  # a new shape each time, and from the host
    print(f"\n{careless.report()}\n")

    with guard(recompile="raise", transfer="raise", app="careful") as careful:
        padded = np.zeros((len(turns), 32), np.float32)
        for row, turn in zip(padded, turns, strict=True):
            row[: len(turn)] = turn
        for row in jax.device_put(list(padded)):  # one shape, copied once
            score(row)
    print(careful.report())


if __name__ == "__main__":
    main()
