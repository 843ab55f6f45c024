"""The settings of each model's run, for the kind of device that there is.

The smaller model begins at nothing, beside tools with strange names, so that no name is known by heart. The larger one
begins as what the smaller one became.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax

from langchain_gemma_jax.models.embedded import embedded_folder

ORDER = ("sprout-s", "sprout-m")
"""Which model is made first: the other one begins as it."""

_EVERYWHERE: dict[str, Any] = {
    "length": 1024,
    "inner_weight": 0.5,
    "look_weight": 1.0,
    "strange": 0.3,
}
_MODELS: dict[str, dict[str, Any]] = {
    "sprout-s": {"seed": "sprout-s", "rate": 2e-3, "decay_share": 0.8, "prompt_weight": 0.05},
    "sprout-m": {  # it begins as the other, so nothing has to be easy at first
        "seed": "sprout-m",
        "rate": 8e-4,
        "decay_share": 0.9,
        "prompt_weight": 0.02,
        "ramp_tokens": 0,
        "grown_from": "sprout-s",
    },
}
_DEVICES: dict[str, dict[str, Any]] = {
    # Small batches learn most from a token, large ones keep a GPU busy.
    "cpu": {"rows": 2, "ramp_tokens": 5_000_000, "warmup_tokens": 100_000},
    "gpu": {"rows": 32, "ramp_tokens": 40_000_000, "warmup_tokens": 4_000_000, "tokens": 400_000_000},  # not tried yet
}
_TOKENS_ON_CPU = {"sprout-s": 50_000_000, "sprout-m": 16_000_000}


def preset(model: str, models: Path | None = None) -> dict[str, Any]:
    """The settings of a model's run on the kind of device that there is.

    What it begins as is in ``models``; by default it is what comes with the package.
    """
    device = "cpu" if jax.default_backend() == "cpu" else "gpu"
    settings = {"tokens": _TOKENS_ON_CPU[model]} | _DEVICES[device] | _EVERYWHERE | _MODELS[model]
    if (before := settings.get("grown_from")) is None:
        return settings
    return settings | {"grown_from": str(models / before if models else embedded_folder(before))}
