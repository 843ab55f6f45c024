"""Rules that follow from objectives: the bounds of a burn, whom it is measured for, what it needs to speak."""

from __future__ import annotations

import yaml

from langchain_gemma_jax.observe.files.burn_rules import FAST, MOST, SLOW, WINDOWS, rules_text
from langchain_gemma_jax.observe.files.objectives import KINDS, objectives_of

TEXT = """
at_least = 7
[availability]
goal = {goal}
pages = {pages}
by = ["model"]
[cold_starts]
goal = 90
"""


def rules(text: str) -> dict[str, dict]:
    (group,) = yaml.safe_load(rules_text(objectives_of(text, "f")))["groups"]
    return {each.get("record", each.get("alert")): each for each in group["rules"]}


def test_bounds_are_the_pace_times_what_may_be_missed():
    for goal, pages in ((99.9, "true"), (99.0, "false"), (95, "true"), (50, "false")):
        found = rules(TEXT.format(goal=goal, pages=pages))
        for name, factor in (("GemmaJaxAvailabilityBurns", FAST), ("GemmaJaxAvailabilityBurnsSlowly", SLOW)):
            bound = min(factor * (1 - goal / 100), MOST)
            assert f"> {bound:.6g} and" in found[name]["expr"], goal
            assert f"{100 - goal:.6g}% may" in found[name]["annotations"]["description"]
        severity = found["GemmaJaxAvailabilityBurns"]["labels"]["severity"]
        assert severity == ("critical" if pages == "true" else "warning")
        assert found["GemmaJaxAvailabilityBurnsSlowly"]["labels"]["severity"] == "warning"


def test_an_objective_is_measured_by_what_it_says_and_only_where_there_is_enough():
    found = rules(TEXT.format(goal=99, pages="true"))
    for window in WINDOWS:
        assert "sum by (job, model)" in found[f"gemma_jax:availability:miss_ratio{window}"]["expr"]
        assert "sum by (job) " in found[f"gemma_jax:cold_starts:miss_ratio{window}"]["expr"]
    assert "of {{ $labels.model }}" in found["GemmaJaxAvailabilityBurns"]["annotations"]["description"]
    for name, rule in found.items():
        if name.startswith("GemmaJax"):
            assert ">= 7" in rule["expr"]
            assert ("deploying" in rule["expr"]) == ("ColdStarts" in name), "cold requests of a start are excused"
    assert {name for name in found if name.startswith("GemmaJax")} == {
        f"GemmaJax{KINDS[name].alert}Burns{pace}" for name in ("availability", "cold_starts") for pace in ("", "Slowly")
    }
