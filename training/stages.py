"""The runs that make both models, one after the other, and the settings of each.

The smaller model begins at nothing and goes on fifteen times, beside tools with strange names, so that no name is
known by heart. The larger one begins as what the smaller one became, and goes on once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from langchain_gemma_jax.models.embedded import embedded_folder

RUNS = (*(("sprout-s", stage) for stage in range(16)), ("sprout-m", 0), ("sprout-m", 1))
"""Each with its stage, in order."""

HALFWAY = {
    ("sprout-s", 7): 6,
    ("sprout-s", 10): 7,
    ("sprout-s", 14): 13,
    ("sprout-s", 15): 14,
    ("sprout-m", 1): 0,
}
"""Runs of which the mean with what was kept of an earlier one is kept: it has most of what both know."""

_DEVICES: dict[str, dict[str, Any]] = {
    # Small batches learn most from a token, large ones keep a GPU busy.
    "cpu": {"tokens": 14_000_000, "rows": 2, "length": 1024, "ramp_tokens": 5_000_000, "warmup_tokens": 100_000},
    "gpu": {  # not tried yet
        "tokens": 400_000_000,
        "rows": 32,
        "length": 1024,
        "ramp_tokens": 40_000_000,
        "warmup_tokens": 4_000_000,
    },
}
_ON: dict[str, Any] = {
    "grown_from": "sprout-s",
    "ramp_tokens": 0,  # it begins as the other, so nothing has to be easy at first
    "inner_weight": 0.5,
    "look_weight": 1.0,
    "prompt_weight": 0.02,
    "strange": 0.3,
}
_STAGES: dict[tuple[str, int], dict[str, Any]] = {
    ("sprout-s", 0): {},
    ("sprout-s", 1): _ON | {"seed": "sprout-s again", "rate": 2e-3, "decay_share": 0.7},
    ("sprout-s", 2): _ON | {"seed": "sprout-s asides", "rate": 1.2e-3, "decay_share": 0.8},
    ("sprout-s", 3): _ON | {"seed": "sprout-s whole words", "rate": 1.2e-3, "decay_share": 0.65},
    ("sprout-s", 4): _ON | {"seed": "sprout-s common words", "rate": 1.2e-3, "decay_share": 0.75},
    ("sprout-s", 5): _ON | {"seed": "sprout-s boundaries", "rate": 1.4e-3, "decay_share": 0.75},
    ("sprout-s", 6): _ON | {"seed": "sprout-s phrasings", "rate": 1e-3, "decay_share": 0.85},
    ("sprout-s", 7): _ON | {"seed": "sprout-s mentions", "rate": 9e-4, "decay_share": 0.9},
    ("sprout-s", 8): _ON | {"seed": "sprout-s labels", "rate": 1.3e-3, "decay_share": 0.7},
    ("sprout-s", 9): _ON | {"seed": "sprout-s labels again", "rate": 1e-3, "decay_share": 0.9},
    # Gentle: at three times this rate so short a run forgot more than it learned.
    ("sprout-s", 10): _ON | {"seed": "sprout-s gentle", "rate": 2.5e-4, "decay_share": 0.9},
    ("sprout-s", 11): _ON | {"seed": "sprout-s gentle again", "rate": 3e-4, "decay_share": 0.8},
    ("sprout-s", 12): _ON | {"seed": "sprout-s nothing to fill in", "rate": 2.5e-4, "decay_share": 0.85},
    ("sprout-s", 13): _ON | {"seed": "sprout-s same verb", "rate": 2.5e-4, "decay_share": 0.85},
    ("sprout-s", 14): _ON | {"seed": "sprout-s apart", "rate": 2.5e-4, "decay_share": 0.9},
    ("sprout-s", 15): _ON | {"seed": "sprout-s apart again", "rate": 4e-4, "decay_share": 0.8},
    ("sprout-m", 0): _ON | {"seed": "sprout-m gentle", "rate": 3e-4, "decay_share": 0.9},
    ("sprout-m", 1): _ON
    | {"grown_from": "sprout-m", "seed": "sprout-m gentle again", "rate": 2.5e-4, "decay_share": 0.8},
}
_ON_CPU: dict[tuple[str, int], dict[str, Any]] = {
    ("sprout-s", 1): {"tokens": 8_500_000, "long_share": 0.05, "dtype": "float32"},
    ("sprout-s", 2): {"tokens": 10_000_000, "long_share": 0.06},
    ("sprout-s", 3): {"tokens": 15_500_000, "long_share": 0.3},
    ("sprout-s", 4): {"tokens": 9_200_000, "long_share": 0.25},
    ("sprout-s", 5): {"tokens": 9_500_000, "long_share": 0.25},
    ("sprout-s", 6): {"tokens": 6_000_000, "long_share": 0.2, "dtype": "float32"},
    ("sprout-s", 7): {"tokens": 3_000_000, "long_share": 0.15, "dtype": "float32"},
    ("sprout-s", 8): {"tokens": 8_500_000, "long_share": 0.1},
    ("sprout-s", 9): {"tokens": 7_000_000, "long_share": 0.12},
    ("sprout-s", 10): {"tokens": 1_600_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-s", 11): {"tokens": 6_000_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-s", 12): {"tokens": 3_400_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-s", 13): {"tokens": 3_000_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-s", 14): {"tokens": 3_000_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-s", 15): {"tokens": 3_500_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-m", 0): {"tokens": 6_800_000, "warmup_tokens": 60_000, "long_share": 0.1},
    ("sprout-m", 1): {"tokens": 10_000_000, "warmup_tokens": 60_000, "long_share": 0.1},
}


def preset(model: str, stage: int = 0, models: Path | None = None) -> dict[str, Any]:
    """The settings of a model's stage for the kind of device that there is.

    What it begins as is in ``models``; by default it is what comes with the package.
    """
    device = "cpu" if jax.default_backend() == "cpu" else "gpu"
    settings = _DEVICES[device] | _STAGES[model, stage] | (_ON_CPU.get((model, stage), {}) if device == "cpu" else {})
    if "grown_from" not in settings:
        return settings
    before = settings["grown_from"]
    return settings | {"grown_from": str(models / before if models else embedded_folder(before))}
