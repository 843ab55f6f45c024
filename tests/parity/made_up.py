"""Weights and prompts out of nothing but a name and a seed: the same bits on every machine and in every release.

Only the bit generator of numpy is used, whose stream never changes, and arithmetic that rounds one way. So a
reference and a test can each make the same weights, and none need to be stored.
"""

from __future__ import annotations

import math
import re
from zlib import crc32

import numpy as np
import numpy.typing as npt

from tests.parity.architectures import VOCABULARY

ROWS, NEW_TOKENS = 2, 64
SHORTEST, LONGEST = 40, 100

_PREFIX = re.compile(r"((model|language_model)\.)+")  # a multimodal model saves others than it has in memory

Floats = npt.NDArray[np.float32]


def tensor(name: str, shape: tuple[int, ...], salt: str, seed: int, *, norm_offset: float) -> Floats:
    """A weight by its stored name: activations stay near 1, and no two scales are the same."""
    name = name.removeprefix(found[0] if (found := _PREFIX.match(name)) else "")
    uniform = _bits(f"{salt}/{name}", seed, math.prod(shape)).astype(np.float32) * np.float32(2**-23) - np.float32(1)
    uniform = uniform.reshape(shape)
    if "norm" in name:
        scale = np.float32(1 - norm_offset) + np.float32(0.4) * uniform
        # Gemma 4 has no other scale in attention: at 1, scores are so large that they make rounding errors grow.
        return scale * np.float32(1.5 * shape[0] ** -0.5) if "q_norm" in name and norm_offset == 0 else scale
    if len(shape) <= 1:  # the scales of layers, experts and routers
        return np.float32(1) + np.float32(0.3) * uniform
    if "embed_tokens" in name:
        deviation = 0.3
    elif "router" in name:
        deviation = 1.5  # decided: between near ties, rounding would choose the expert
    elif "per_layer_input_gate" in name:
        deviation = 0.25 * shape[-1] ** -0.5  # larger, it closes so far that a norm after it has only errors to scale
    else:
        deviation = shape[-1] ** -0.5
    return np.float32(deviation * 3**0.5) * uniform


def prompts(salt: str, seed: int) -> list[list[int]]:
    """The tokens of ``ROWS`` prompts of different lengths."""
    found = []
    for row in range(ROWS):
        bits = _bits(f"{salt}/prompt {row}", seed, LONGEST + 1)
        length = SHORTEST + int(bits[0]) % (LONGEST - SHORTEST + 1)
        found.append([2, *(3 + int(b) % (VOCABULARY - 3) for b in bits[1:length])])
    return found


def _bits(name: str, seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Numbers below 2**24, which float32 holds exactly."""
    return np.random.PCG64([seed, crc32(name.encode())]).random_raw(count) >> np.uint64(40)
