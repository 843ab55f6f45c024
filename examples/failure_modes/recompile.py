"""Failure mode 1: each turn has a new length, and XLA compiles the model again for each.

Run: python examples/failure_modes/recompile.py
"""

from __future__ import annotations

import jax
import numpy as np
from shared import QUESTIONS, badly, forward, read, side_by_side, weights, well

ANSWER = 4  # words


def agent() -> None:
    """An agent whose model is compiled for the length of the conversation, which grows with each word."""
    params = jax.device_put(weights())
    model = jax.jit(forward)
    conversation: list[int] = []
    for question in QUESTIONS:
        conversation += read(question)
        for _ in range(ANSWER):
            tokens = jax.device_put(np.array(conversation, np.int32))
            conversation.append(int(model(params, tokens)))  # a new shape each time


bad, _ = badly(agent, recompile="callback", transfer="off", residency="off", cold_start="off", app="recompile")
side_by_side("recompile", bad, well(), "bytes copied in steps")
