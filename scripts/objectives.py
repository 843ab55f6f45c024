"""Writes what follows from the objectives: python scripts/objectives.py.

Alert rules for Prometheus, the headings of docs/objectives.md, and all rules as an object for Kubernetes.
``scripts/dashboard.py`` draws their panels.
"""

from __future__ import annotations

from pathlib import Path

from langchain_gemma_jax.observe.files import OBJECTIVE_RULES, OBJECTIVES, RULES, text_of
from langchain_gemma_jax.observe.files.burn_rules import rules_text
from langchain_gemma_jax.observe.files.objectives import Objective, Objectives, objectives_of

ROOT = Path(__file__).parents[1]
OBJECTIVE_RULES_FILE = ROOT / "langchain_gemma_jax" / "observe" / "files" / OBJECTIVE_RULES
PAGE = ROOT / "docs" / "objectives.md"
MONITORING = ROOT / "deploy" / "kubernetes" / "monitoring.yaml"
BEGIN = "<!-- Made from objectives.toml by scripts/objectives.py: change that. -->\n"


def headings(objectives: Objectives) -> str:
    """The part of the page that is made: a heading for each objective, its alerts, and where to look first."""
    return BEGIN + "".join(_heading(each) for each in objectives.all)


def _heading(objective: Objective) -> str:
    kind = objective.kind
    alerts = (
        [f"GemmaJax{kind.alert}"] if kind.level else [f"GemmaJax{kind.alert}Burns{pace}" for pace in ("", "Slowly")]
    )
    named = " and ".join(f"`{alert}`" for alert in alerts)
    wakes = "" if kind.level else " A fast burn pages." if objective.pages else " Neither pages."
    return (
        f"\n### {kind.title}\n\n`[{objective.name}]`: {objective.promise}. Alerts: {named}.{wakes} "
        f"Look first at [{kind.runbook.replace('-', ' ')}](runbooks.md#{kind.runbook}).\n"
    )


def page(written: str, objectives: Objectives) -> str:
    """The whole page: what people wrote, and the part that is made, which is last."""
    return written.partition(BEGIN)[0] + headings(objectives)


def monitoring(written: str, *rules: str) -> str:
    """The objects that Prometheus' operator takes: the last one has all rules."""
    head, _, _ = written.partition("  groups:\n")
    groups = "\n".join(each.partition("groups:\n")[2].rstrip("\n") + "\n" for each in rules)
    return f"{head}  groups:\n" + "".join(f"  {line}" if line.strip() else line for line in groups.splitlines(True))


if __name__ == "__main__":
    found = objectives_of(text_of(OBJECTIVES), OBJECTIVES)
    OBJECTIVE_RULES_FILE.write_text(rules_text(found))
    MONITORING.write_text(monitoring(MONITORING.read_text(), text_of(RULES), rules_text(found)))
    PAGE.write_text(page(PAGE.read_text(), found))
    print(f"{OBJECTIVE_RULES_FILE.name}, {PAGE.name}: {len(found.all)} objectives")
