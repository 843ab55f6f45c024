"""Objectives as panels of a dashboard: how fast each uses up what it allows. They show what the rules have recorded."""

from __future__ import annotations

from collections.abc import Iterator

from langchain_gemma_jax.observe.files.objectives import Objective, Objectives

Panel = tuple[str, str, str, list[tuple[str, str]]]
"""Title, kind, unit, and what is drawn: expressions with their legends."""


def burn_panels(objectives: Objectives) -> Iterator[Panel]:
    """Yield a panel for each objective: burns, where 1 is the pace that uses up the allowance, or a level."""
    for each in objectives.all:
        if each.kind.level:
            yield f"{each.kind.title}: the level", "timeseries", "percentunit", [(_level(each), _legend(each))]
        else:
            drawn = [
                (f'gemma_jax:{each.name}:burn{window}{{job=~"$job"}}', f"{window}, {_legend(each)}")
                for window in ("1h", "6h")
            ]
            yield f"{each.kind.title}: the burn", "timeseries", "short", drawn


def _level(objective: Objective) -> str:
    recorded = "utilization:ratio1h" if objective.kind.level == "utilization" else "device_memory:used_ratio"
    return f'gemma_jax:{recorded}{{job=~"$job"}}'


def _legend(objective: Objective) -> str:
    labels = ("job", *objective.by, *(("instance", "device") if objective.kind.level == "device_memory" else ()))
    return " ".join(f"{{{{{label}}}}}" for label in labels)
