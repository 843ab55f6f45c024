"""Objectives as Prometheus' rules: the shares that are missed over four windows, and alerts for fast and slow burns.

A burn of 1 uses up a month's allowance in a month; one of 14.4 a fiftieth of it in an hour, one of 6 a twentieth in
six. Each alert looks at a long window and at a short one, so that it ends soon after what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from langchain_gemma_jax.observe.files.objectives import Objective, Objectives

PAGE = "docs/objectives.md"
WINDOWS = ("5m", "30m", "1h", "6h")
FAST, SLOW = 14.4, 6.0
MOST = 0.9  # that may be missed without an alert, whatever the goal
HEAD = """\
# Made from objectives.toml by scripts/objectives.py, or by copy_to(folder, objectives=...). Change that file instead.
groups:
  - name: gemma-jax-objectives
    interval: 30s
    rules:
"""


def rules_text(objectives: Objectives) -> str:
    """Return the rules of objectives, as Prometheus reads them."""
    return HEAD + "".join(rule for each in objectives.all for rule in _rules(each, objectives.at_least))


def anchor(objective: Objective) -> str:
    """Return the heading of an objective on its page, as a link has it."""
    return re.sub(r"[^a-z0-9 -]", "", objective.kind.title.lower()).replace(" ", "-")


def _rules(objective: Objective, at_least: float) -> Iterator[str]:
    if objective.kind.level == "utilization":
        yield from _utilization(objective)
    elif objective.kind.level:
        yield from _device_memory(objective)
    else:
        for window in WINDOWS:
            yield _record(f"{objective.name}:miss_ratio{window}", _missed(objective, window))
        for window in ("1h", "6h"):
            burn = f"gemma_jax:{objective.name}:miss_ratio{window} / {objective.allowed:g}"
            yield _record(f"{objective.name}:burn{window}", burn)
        yield _burns(objective, at_least, "", ("1h", "5m"), FAST, "2m", "critical" if objective.pages else "warning")
        yield _burns(objective, at_least, "Slowly", ("6h", "30m"), SLOW, "15m", "warning")


def _missed(objective: Objective, window: str) -> str:
    kind = objective.kind
    every = _rate(objective, kind.of, window)
    if kind.bad:
        return f"{_rate(objective, kind.bad, window)} / {every}"
    return f"1 - {_rate(objective, kind.good, window)} / {every}"


def _rate(objective: Objective, counters: str, window: str, function: str = "rate") -> str:
    """Return how much counters grew, by what the objective is measured by; "a + b" are two that are added."""
    by = ", ".join(("job", *objective.by))
    within = "" if objective.within is None else str(float(objective.within))
    grown = [f"sum by ({by}) ({function}({each.strip()}[{window}]))" for each in counters.split(" + ")]
    return (f"({' + '.join(grown)})" if len(grown) > 1 else grown[0]).replace("WITHIN", within)


def _burns(
    objective: Objective, at_least: float, pace: str, windows: tuple[str, str], factor: float, wait: str, severity: str
) -> str:
    kind, long = objective.kind, windows[0]
    bound = min(round(factor * objective.allowed, 9), MOST)
    asked = " and ".join(f"gemma_jax:{objective.name}:miss_ratio{window} > {bound:g}" for window in windows)
    enough = f"{_rate(objective, kind.of, '1h', 'increase')} >= {at_least:g}"
    expression = f"({asked})\n            and {enough}"
    if kind.excused:
        expression += "\n            unless on (job) (max by (job) (gemma_jax:deploying) > 0)"
    whose = "".join(f" of {{{{ $labels.{label} }}}}" for label in objective.by)
    return _alert(
        f"{kind.alert}Burns{pace}",
        expression,
        wait,
        severity,
        objective,
        f"{{{{ $value | humanizePercentage }}}} {objective.filled(kind.missed)}{whose} within the last {long}; "
        f"{100 * objective.allowed:g}% may.",
    )


def _utilization(objective: Objective) -> Iterator[str]:
    busy = "sum by (job) (rate(gemma_jax_device_busy_seconds_total[1h]))"
    yield _record("utilization:ratio1h", f"{busy} / count by (job) (gemma_jax_engine_up == 1)")
    expression = (
        f"gemma_jax:utilization:ratio1h < {objective.percent / 100:g}\n"
        "            and sum by (job) (rate(gemma_jax_requests_total[1h])) > 0"
    )
    description = (
        f"Devices had work for {{{{ $value | humanizePercentage }}}} of the time; {objective.percent:g}% is the goal."
    )
    yield _alert("Underused", expression, "6h", "info", objective, description)


def _device_memory(objective: Objective) -> Iterator[str]:
    yield _record("device_memory:used_ratio", "gemma_jax_device_used_bytes / gemma_jax_device_budget_bytes")
    expression = f"gemma_jax:device_memory:used_ratio > {objective.percent / 100:g}"
    description = "{{ $labels.device }} of {{ $labels.instance }}: {{ $value | humanizePercentage }} of the budget."
    yield _alert("DeviceMemory", expression, "5m", "warning", objective, description)


def _record(name: str, expression: str) -> str:
    return f"      - record: gemma_jax:{name}\n        expr: |\n          {expression}\n"


def _alert(name: str, expression: str, wait: str, severity: str, objective: Objective, description: str) -> str:
    return (
        f"      - alert: GemmaJax{name}\n"
        f"        expr: |\n          {expression}\n"
        f"        for: {wait}\n"
        f"        labels: {{severity: {severity}, objective: {objective.name}}}\n"
        "        annotations:\n"
        f'          summary: "An objective is missed: {objective.kind.title.lower()}"\n'
        f'          description: "{description}"\n'
        f"          runbook: {PAGE}#{anchor(objective)}\n"
    )
