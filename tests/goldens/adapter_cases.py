"""The random adapters that ours are compared with PEFT's: on which tiny model, and by which configuration.

Plain values only: this file is read in an environment that has no JAX, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.parity.made_up import tensor

SEED = 0
BASE = "tiny/base"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
EVERY = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]

ADAPTED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gemma": ("gemma-2b", {"r": 4, "lora_alpha": 2, "target_modules": EVERY}),
    "gemma2-rslora": (
        "gemma-2-2b",
        {"r": 5, "lora_alpha": 1.5, "use_rslora": True, "target_modules": ["q_proj", "v_proj"]},
    ),
    "gemma3-patterns": (
        "gemma-3-270m",
        {
            "r": 3,
            "lora_alpha": 2,
            "rank_pattern": {"q_proj": 9, "layers.1.mlp.down_proj": 2},
            "alpha_pattern": {"v_proj": 0.5, "layers.2.mlp.up_proj": 3},
            "target_modules": EVERY,
        },
    ),
    "gemma3-multimodal": (
        "gemma-3-4b-multimodal",
        {"r": 4, "lora_alpha": 3, "target_modules": r".*language_model.*\.(q_proj|o_proj|gate_proj)"},
    ),
    "gemma4-shared": ("gemma-4-e2b", {"r": 4, "lora_alpha": 2, "target_modules": EVERY}),
    "gemma4-experts": ("gemma-4-26b-a4b", {"r": 4, "lora_alpha": 2, "target_modules": EVERY}),
}
"""Each has a file ``adapters/NAME.npz``."""


def adapter_tensor(name: str, shape: tuple[int, ...], case: str) -> npt.NDArray[np.float32]:
    """One of an adapter's tensors, by its stored name."""
    return tensor(name, shape, f"adapter {case}", SEED, norm_offset=0.0)
