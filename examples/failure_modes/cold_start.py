"""Failure mode 4: a process begins cold, compiles everything once more, and its deadline is over before it answers.

Run: python examples/failure_modes/cold_start.py
"""

from __future__ import annotations

import jax
import numpy as np
from shared import QUESTIONS, badly, forward, read, side_by_side, weights, well

LENGTH, DEADLINE = 128, 0.05  # tokens; seconds for an answer, of which the model needs a hundredth


def agent() -> None:
    """An agent that answers each question as a process of its own would: with nothing that was compiled before."""
    params = jax.device_put(weights())
    for question in QUESTIONS:
        jax.clear_caches()  # as a new process has none
        model = jax.jit(forward)
        tokens = np.zeros(LENGTH, np.int32)
        words = read(question)
        tokens[-len(words) :] = words
        int(model(params, jax.device_put(tokens)))


limits = {"deadline": DEADLINE, "app": "cold start"}
bad, _ = badly(agent, recompile="off", transfer="off", residency="off", cold_start="callback", **limits)
side_by_side("cold-start", bad, well(timeout=60), "bytes copied in steps")
