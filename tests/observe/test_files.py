"""The files that people install: rules that a Prometheus takes and that say what they should, a dashboard."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.files import DASHBOARD, OBJECTIVE_RULES, OBJECTIVES, RULES, copy_to, text_of
from langchain_gemma_jax.observe.files.burn_rules import rules_text
from langchain_gemma_jax.observe.files.objectives import objectives_of
from langchain_gemma_jax.observe.metrics.families import families
from tests.engine.faults_support import greedy
from tests.observe.prometheus import MISSING, PROMETHEUS, PROMTOOL, ROOT, asked, query, scraping

METRIC = re.compile(r"\bgemma_jax_[a-z_]+")
RECORDED = re.compile(r"\bgemma_jax:[a-z0-9_:]+")
needs_promtool = pytest.mark.skipif(not PROMTOOL, reason=MISSING)


def known_names() -> set[str]:
    found = set()
    for family in families(None):
        if family.kind == "counter":
            found.add(f"{family.name}_total")
        elif family.kind == "histogram":
            found |= {f"{family.name}_{part}" for part in ("bucket", "sum", "count")}
        else:
            found.add(family.name)
    return found


def queried(text: str) -> set[str]:
    return set(METRIC.findall(text))


def bounds() -> set[str]:
    from langchain_gemma_jax.engine.base.metrics import LATENCIES

    return {str(float(bound)) for bound in LATENCIES}


def expressions() -> list[str]:
    panels = json.loads(text_of(DASHBOARD))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def every_rule() -> str:
    return text_of(RULES) + text_of(OBJECTIVE_RULES)


def test_every_metric_that_is_asked_for_exists_and_every_one_that_exists_is_shown():
    rules, drawn = every_rule(), "\n".join(expressions())
    assert queried(rules) <= known_names()
    assert queried(drawn) <= known_names()
    shown = {
        name.removesuffix("_total").removesuffix("_bucket").removesuffix("_sum") for name in queried(rules + drawn)
    }
    for_other_purposes = {
        "gemma_jax_kv_bytes", "gemma_jax_kv_budget_bytes", "gemma_jax_model_resident", "gemma_jax_device_copies",
        "gemma_jax_oldest_wait_seconds", "gemma_jax_device_capacity_bytes", "gemma_jax_program_compiles",
    }  # fmt: skip
    assert {family.name for family in families(None)} - shown == for_other_purposes


def test_goals_are_bounds_of_the_histograms():
    asked = re.findall(r'le="([^"]+)"', every_rule() + "\n".join(expressions()).replace('\\"', '"'))
    assert asked
    assert set(asked) <= bounds()


def headings_of(page: str) -> set[str]:
    lines = (ROOT / "docs" / page).read_text().splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("##")]
    return {f"{page}#" + re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in titles}


def test_what_rules_and_panels_use_is_recorded_and_every_alert_leads_to_a_page_that_names_it():
    rules = every_rule()
    recorded = re.findall(r"record: (\S+)", rules)
    assert len(recorded) == len(set(recorded))
    assert set(RECORDED.findall(rules)) == set(recorded)
    assert set(RECORDED.findall("\n".join(expressions()))) <= set(recorded)
    alerts, asked = re.findall(r"alert: (\S+)", rules), re.findall(r"runbook: docs/(\S+)", rules)
    assert len(alerts) == len(asked) == len(set(alerts)) == rules.count("severity:") >= 25
    assert set(asked) <= headings_of("runbooks.md") | headings_of("objectives.md")
    named = "".join((ROOT / "docs" / name).read_text() for name in ("runbooks.md", "objectives.md"))
    assert [alert for alert in alerts if f"`{alert}`" not in named] == []
    told = set(re.findall(r"`(GemmaJax\w+)`", named))
    assert told - set(alerts) == set()


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_made_from_the_objectives_is_what_the_script_says():
    module, found = script("objectives"), objectives_of(text_of(OBJECTIVES), OBJECTIVES)
    assert text_of(OBJECTIVE_RULES) == rules_text(found), "run: python scripts/objectives.py"
    for path, made in (
        (module.PAGE, module.page(module.PAGE.read_text(), found)),
        (module.MONITORING, module.monitoring(module.MONITORING.read_text(), text_of(RULES), rules_text(found))),
    ):
        assert path.read_text() == made, "run: python scripts/objectives.py"


def test_the_dashboard_is_what_the_script_says_and_its_panels_do_not_overlap():
    module = script("dashboard")
    assert text_of(DASHBOARD) == module.dashboard(), "run: python scripts/dashboard.py"
    cells = [
        (x, y)
        for panel in module.panels()
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    ids = [panel["id"] for panel in module.panels()]
    assert len(ids) == len(set(ids))


def test_grafana_knows_every_field_of_the_dashboard():
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="Grafana's own types")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins

    register_default_plugins()
    dashboard = json.loads(text_of(DASHBOARD))
    back = json.loads(JSONEncoder(sort_keys=True, indent=None).encode(models.Dashboard.from_json(dashboard)))
    # What a type does not know, it drops. Of a variable it drops the copy of its query that is shown in lists.
    assert {each.rpartition(".")[2] for each in lost(dashboard, back)} == {"definition"}


def lost(tree: object, back: object, place: str = "") -> Iterator[str]:
    """Return the parts of a tree that did not come back, or came back otherwise."""
    if isinstance(tree, dict) and isinstance(back, dict):
        for name, value in tree.items():
            yield from lost(value, back[name], f"{place}.{name}") if name in back else (f"{place}.{name}",)
    elif isinstance(tree, list) and isinstance(back, list) and len(tree) == len(back):
        for number, (one, other) in enumerate(zip(tree, back, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif tree != back:
        yield place


def test_files_are_copied_and_nobodys_own_is_overwritten(tmp_path):
    for _ in range(2):
        found = copy_to(tmp_path / "monitoring")
        assert [path.name for path in found] == [DASHBOARD, RULES, OBJECTIVE_RULES, OBJECTIVES]
    assert found[1].read_text() == text_of(RULES)
    found[0].write_text("mine")
    with pytest.raises(InputError, match="is there already, and differs"):
        copy_to(tmp_path / "monitoring")
    assert copy_to(tmp_path / "monitoring", replace=True)[0].read_text() == text_of(DASHBOARD)
    own = tmp_path / "own.toml"
    own.write_text("[availability]\ngoal = 99\nby = ['model']\n")
    found = copy_to(tmp_path / "of my own", objectives=own)
    assert [path.name for path in found] == [DASHBOARD, RULES, OBJECTIVE_RULES]
    made = found[2].read_text()
    assert "miss_ratio1h > 0.144 and" in made
    assert "sum by (job, model)" in made
    assert "first_token" not in made
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder that can be written to"):
        copy_to(tmp_path / "file")


@needs_promtool
@pytest.mark.slow
def test_prometheus_takes_the_rules_and_they_say_what_they_should(tmp_path):
    copy_to(tmp_path)
    told = (Path(__file__).parent / "rules_test.yaml").read_text().replace("RULES", f"{tmp_path}/prometheus-*.yaml")
    (tmp_path / "rules_test.yaml").write_text(told)
    for arguments in (["check", "rules", RULES, OBJECTIVE_RULES], ["test", "rules", "rules_test.yaml"]):
        command = [PROMTOOL, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SUCCESS" in done.stdout


@pytest.mark.skipif(not PROMETHEUS, reason=MISSING)
@pytest.mark.slow
def test_a_real_prometheus_scrapes_a_running_agent(running_of, tiny_model, tmp_path):
    pytest.importorskip("prometheus_client", reason="an extra")
    from langchain_gemma_jax.observe.metrics.collector import start_metrics_server

    engine = running_of()
    served = engine.serve(tiny_model)
    for number in range(5):
        engine.submit(served, [60 + number, 61], greedy(3), app="agent").result()
    server = start_metrics_server(0)
    copy_to(tmp_path)
    try:
        with scraping(server.url, [RULES, OBJECTIVE_RULES], tmp_path) as port:
            assert asked(port, "sum(gemma_jax_requests_total)") == engine.report().requests
            assert asked(port, 'up{job="gemma-jax"}') == 1
            for name in sorted(
                queried(text_of(RULES)) - {"gemma_jax_request_errors_total", "gemma_jax_guard_trips_total"}
            ):
                if not name.startswith(("gemma_jax_model_", "gemma_jax_compiles")):
                    assert asked(port, f"count({name})") >= 1, name
            for expression in expressions():
                plain = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
                query(port, re.sub(r"\$(job|instance|app)", ".*", plain))
            assert asked(port, "gemma_jax:deploying") is not None
    finally:
        server.close()
