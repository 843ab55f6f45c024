"""What people install: rules that a Prometheus takes and that say what they should, a dashboard of what there is."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.files import DASHBOARD, RULES, copy_to, text_of
from langchain_gemma_jax.observe.metrics.families import families
from tests.engine.faults_support import greedy

ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\bgemma_jax_[a-z_]+")
RECORDED = re.compile(r"\bgemma_jax:[a-z0-9_:]+")
# Where scripts/prometheus unpacks Debian's package, if it is not installed.
PLACES = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / "build" / "prometheus" / "usr" / "bin")])
PROMETHEUS, PROMTOOL = (shutil.which(name, path=PLACES) or "" for name in ("prometheus", "promtool"))
NO_PROMETHEUS = "needs Prometheus: scripts/prometheus fetches it"

needs_promtool = pytest.mark.skipif(not PROMTOOL, reason=NO_PROMETHEUS)


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


def test_every_metric_that_is_asked_for_exists_and_every_one_that_exists_is_shown():
    rules, drawn = text_of(RULES), "\n".join(expressions())
    assert queried(rules) <= known_names()
    assert queried(drawn) <= known_names()
    shown = {
        name.removesuffix("_total").removesuffix("_bucket").removesuffix("_sum") for name in queried(rules + drawn)
    }
    for_other_purposes = {
        "gemma_jax_kv_bytes", "gemma_jax_kv_budget_bytes", "gemma_jax_model_resident", "gemma_jax_device_copies",
        "gemma_jax_oldest_wait_seconds",
    }  # fmt: skip
    assert {family.name for family in families(None)} - shown == for_other_purposes


def test_goals_are_bounds_of_the_histograms():
    asked = re.findall(r'le="([^"]+)"', text_of(RULES) + "\n".join(expressions()).replace('\\"', '"'))
    assert asked
    assert set(asked) <= bounds()


def test_what_rules_use_is_recorded_and_every_alert_leads_to_a_runbook():
    rules = text_of(RULES)
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert set(RECORDED.findall(rules)) == recorded
    runbooks = (ROOT / "docs" / "runbooks.md").read_text()
    titles = [line[3:].lower() for line in runbooks.splitlines() if line.startswith("## ")]
    headings = {re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in titles}
    alerts, asked = re.findall(r"alert: (\S+)", rules), re.findall(r"runbook: docs/runbooks\.md#(\S+)", rules)
    assert len(alerts) == len(asked) == rules.count("severity:") >= 13
    assert set(asked) <= headings


def test_the_dashboard_is_what_the_script_says_and_its_panels_do_not_overlap():
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "scripts" / "dashboard.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
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


def test_files_are_copied_and_nobodys_own_is_overwritten(tmp_path):
    for _ in range(2):
        found = copy_to(tmp_path / "monitoring")
        assert [path.name for path in found] == [DASHBOARD, RULES]
    assert found[1].read_text() == text_of(RULES)
    found[0].write_text("mine")
    with pytest.raises(InputError, match="is there already, and differs"):
        copy_to(tmp_path / "monitoring")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="expected a folder that can be written to"):
        copy_to(tmp_path / "file")


@needs_promtool
def test_prometheus_takes_the_rules_and_they_say_what_they_should(tmp_path):
    copy_to(tmp_path)
    told = (Path(__file__).parent / "rules_test.yaml").read_text().replace("RULES", str(tmp_path / RULES))
    (tmp_path / "rules_test.yaml").write_text(told)
    for arguments in (["check", "rules", RULES], ["test", "rules", "rules_test.yaml"]):
        command = [PROMTOOL, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SUCCESS" in done.stdout


@pytest.mark.skipif(not PROMETHEUS, reason=NO_PROMETHEUS)
@pytest.mark.slow
def test_a_real_prometheus_scrapes_a_running_agent(running_of, tiny_model, tmp_path):
    pytest.importorskip("prometheus_client", reason="an extra")
    from langchain_gemma_jax.observe.metrics.collector import start_metrics_server

    engine = running_of()
    served = engine.serve(tiny_model)
    for number in range(5):
        engine.submit(served, [60 + number, 61], greedy(3), app="agent").result()
    server, port = start_metrics_server(0), free_port()
    copy_to(tmp_path)
    target = urllib.parse.urlsplit(server.url).netloc
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{RULES}]\n"
        f"scrape_configs: [{{job_name: gemma-jax, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    command = [PROMETHEUS, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    process = subprocess.Popen(
        [*command, f"--web.listen-address=127.0.0.1:{port}"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert asked(port, "sum(gemma_jax_requests_total)") == engine.report().requests
        assert asked(port, 'up{job="gemma-jax"}') == 1
        for name in sorted(queried(text_of(RULES)) - {"gemma_jax_request_errors_total", "gemma_jax_guard_trips_total"}):
            if not name.startswith(("gemma_jax_model_", "gemma_jax_compiles")):
                assert asked(port, f"count({name})") >= 1, name
        for expression in expressions():
            plain = expression.replace("$__rate_interval", "1m").replace("$__range", "1h")
            query(port, re.sub(r"\$(job|instance|app)", ".*", plain))
        assert asked(port, "gemma_jax:deploying") is not None
    finally:
        process.terminate()
        process.wait()
        server.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def query(port: int, expression: str) -> list:
    address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)["data"]["result"]


def asked(port: int, expression: str) -> float:
    """The value of an expression, as soon as there is one."""
    while True:
        with suppress(OSError):
            if found := query(port, expression):
                return float(found[0]["value"][1])
        time.sleep(0.25)
