"""Failure mode 2: what the host has is handed to JAX as it is, and copied to the device at each step.

Run: python examples/failure_modes/transfer.py
"""

from __future__ import annotations

import jax
import numpy as np
from shared import QUESTIONS, badly, forward, read, side_by_side, weights, well

from langchain_gemma_jax import engine

LENGTH, ANSWER = 128, 4  # tokens that the conversation is padded to; words


def agent() -> None:
    """An agent that keeps its weights, and what tools answer, in numpy arrays."""
    params = weights()
    model = jax.jit(forward)
    conversation: list[int] = []
    for question in QUESTIONS:
        conversation += read(question)
        for _ in range(ANSWER):
            padded = np.zeros(LENGTH, np.int32)
            padded[-len(conversation) :] = conversation[-LENGTH:]
            conversation.append(int(model(params, padded)))  # all of it is copied, each time


bad, report = badly(agent, recompile="off", transfer="callback", residency="off", cold_start="off", app="transfer")
print(f"Its report: {report.device_placement}")
good = well()
print(f"ChatGemmaJax: {engine().report().device_placement}")
side_by_side("transfer", bad, good, "bytes copied in steps")
