"""Failure mode 3: steps want models of different sizes, and each is put on the device anew when its turn comes.

Run: python examples/failure_modes/residency.py
"""

from __future__ import annotations

import jax
import numpy as np
from shared import QUESTIONS, badly, forward, read, side_by_side, weights, well

LENGTH = 128


def agent() -> None:
    """An agent that makes room for its second model by giving up the first one, and the other way round."""
    light, heavy = weights(1, layers=2), weights(2, layers=8)
    model = jax.jit(forward)
    for _ in range(2):
        for question in QUESTIONS:
            for stored in (light, heavy):
                params = jax.device_put(stored)  # again, each time
                tokens = np.zeros(LENGTH, np.int32)
                words = read(question)
                tokens[-len(words) :] = words
                int(model(params, jax.device_put(tokens)))
                for array in params.values():
                    array.delete()


bad, _ = badly(agent, recompile="off", transfer="off", residency="callback", cold_start="off", app="residency")
side_by_side("residency", bad, well(("sprout-s", "sprout-m")), "bytes placed or copied")
