"""Panels of objectives: each has one, which shows what the rules record for it."""

from __future__ import annotations

import re

import yaml

from langchain_gemma_jax.observe.files import OBJECTIVES, text_of
from langchain_gemma_jax.observe.files.burn_panels import burn_panels
from langchain_gemma_jax.observe.files.burn_rules import rules_text
from langchain_gemma_jax.observe.files.objectives import objectives_of


def test_each_objective_has_a_panel_of_what_is_recorded_for_it():
    found = objectives_of(text_of(OBJECTIVES), OBJECTIVES)
    recorded = {
        rule["record"]
        for group in yaml.safe_load(rules_text(found))["groups"]
        for rule in group["rules"]
        if "record" in rule
    }
    panels = list(burn_panels(found))
    assert len(panels) == len({title for title, *_ in panels}) == len(found.all)
    for each, (title, _, unit, drawn) in zip(found.all, panels, strict=True):
        assert title.startswith(each.kind.title)
        assert (unit == "percentunit") == bool(each.kind.level)
        for expression, legend in drawn:
            assert set(re.findall(r"gemma_jax:[\w:]+", expression)) <= recorded
            assert "{{job}}" in legend
