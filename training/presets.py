"""The runs that make both models, and the settings of each: for CPU cores, on which both were made.

The smaller model begins at nothing, beside tools with strange names, so that no name is known by heart. The larger one
begins as what the smaller one became. Both go on from there, one stage of what is made up after the other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_gemma_jax.models.configuration.embedded import embedded_folder

RUNS = (
    "sprout-s",
    "sprout-m",
    "sprout-m-on",
    "sprout-m-people",
    "sprout-s-people",
    "sprout-m-wide",
    "sprout-s-wide",
    "sprout-m-plain",
    "sprout-s-plain",
    "sprout-m-fuller",
    "sprout-m-lifelike",
    "sprout-m-hands-on",
    "sprout-s-calling",
)
"""In their order: each begins as what one before it ended as. The first run of a model has the model's name."""

_EVERYWHERE: dict[str, Any] = {
    "length": 1024,
    "rows": 2,  # small batches learn most from a token
    "warmup_tokens": 100_000,
    "ramp_tokens": 5_000_000,
    "inner_weight": 0.5,
    "look_weight": 1.0,
    "strange": 0.3,
}
_AGAIN: dict[str, Any] = {
    "prompt_weight": 0.02,
    "ramp_tokens": 0,  # it begins as a model that can do much, so nothing has to be easy at first
    "decay_share": 0.9,
}
_PEOPLE = _AGAIN | {"stage": 3, "rows": 4, "long_share": 0.05}
_S, _M = {"model": "sprout-s", "grown_from": "sprout-s"}, {"model": "sprout-m", "grown_from": "sprout-m"}
_RUNS: dict[str, dict[str, Any]] = {
    "sprout-s": {"model": "sprout-s", "seed": "sprout-s", "rate": 2e-3, "decay_share": 0.8, "prompt_weight": 0.05},
    "sprout-m": _AGAIN | {"model": "sprout-m", "seed": "sprout-m", "rate": 8e-4, "grown_from": "sprout-s"},
    "sprout-m-on": _AGAIN | _M | {"seed": "sprout-m, on", "rate": 6e-4, "rows": 4, "stage": 2},
    "sprout-m-people": _PEOPLE | _M | {"seed": "sprout-m, like people", "rate": 6e-4},
    "sprout-s-people": _PEOPLE | _S | {"seed": "sprout-s, like people", "rate": 8e-4, "kept_share": 0.5},
    "sprout-m-wide": _PEOPLE | _M | {"seed": "sprout-m, wider", "rate": 6e-4, "stage": 4},
    "sprout-s-wide": _PEOPLE | _S | {"seed": "sprout-s, wider", "rate": 6e-4, "stage": 4, "kept_share": 0.5},
    "sprout-m-plain": _PEOPLE | _M | {"seed": "sprout-m, plainer", "rate": 8e-4, "stage": 5, "kept_share": 0.5},
    "sprout-s-plain": _PEOPLE | _S | {"seed": "sprout-s, plainer", "rate": 6e-4, "stage": 5, "kept_share": 0.5},
    "sprout-m-fuller": _PEOPLE | _M | {"seed": "sprout-m, fuller", "rate": 1e-3, "stage": 6, "kept_share": 0.5},
    "sprout-m-lifelike": _PEOPLE | _M | {"seed": "sprout-m, lifelike", "rate": 8e-4, "stage": 7, "kept_share": 0.35},
    "sprout-m-hands-on": _PEOPLE | _M | {"seed": "sprout-m, hands on", "rate": 8e-4, "stage": 8, "kept_share": 0.5},
    "sprout-s-calling": _PEOPLE | _S | {"seed": "sprout-s, calling", "rate": 1.2e-3, "stage": 9, "kept_share": 0.5},
}
_TOKENS = {
    "sprout-s": 50_000_000,
    "sprout-m": 16_000_000,
    "sprout-m-on": 16_000_000,
    "sprout-m-people": 15_000_000,
    "sprout-s-people": 6_000_000,
    "sprout-m-wide": 19_000_000,
    "sprout-s-wide": 6_000_000,
    "sprout-m-plain": 17_000_000,
    "sprout-s-plain": 5_000_000,
    "sprout-m-fuller": 11_500_000,
    "sprout-m-lifelike": 13_000_000,
    "sprout-m-hands-on": 10_000_000,
    "sprout-s-calling": 26_000_000,
}


def preset(run: str, models: Path | None = None) -> dict[str, Any]:
    """The settings of a run.

    What it begins as is in ``models``; by default it is what comes with the package.
    """
    settings = {"tokens": _TOKENS[run]} | _EVERYWHERE | _RUNS[run]
    if (before := settings.get("grown_from")) is None:
        return settings
    return settings | {"grown_from": str(models / before if models else embedded_folder(before))}
