"""A real Prometheus, where there is one: Debian's, which scripts/prometheus fetches."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Where scripts/prometheus unpacks Debian's package, if it is not installed.
PLACES = os.pathsep.join([os.environ.get("PATH", ""), str(ROOT / "build" / "prometheus" / "usr" / "bin")])
PROMETHEUS, PROMTOOL = (shutil.which(name, path=PLACES) or "" for name in ("prometheus", "promtool"))
MISSING = "needs Prometheus: scripts/prometheus fetches it"


@contextmanager
def scraping(metrics_url: str, rules: list[str], folder: Path) -> Iterator[int]:
    """Run a Prometheus that scrapes every second, with files of rules in its folder. Yield its port."""
    port, target = free_port(), urllib.parse.urlsplit(metrics_url).netloc
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{', '.join(rules)}]\n"
        f"scrape_configs: [{{job_name: gemma-jax, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    process = subprocess.Popen(
        [
            PROMETHEUS,
            "--config.file=prometheus.yml",
            "--storage.tsdb.path=data",
            "--enable-feature=exemplar-storage",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def query(port: int, expression: str) -> list:
    """Return the value of an expression now."""
    return _get(port, "query", query=expression)["result"]


def exemplars(port: int, expression: str) -> list:
    """The exemplars of the series of an expression."""
    return _get(port, "query_exemplars", query=expression, start="0", end=str(2**32))


def _get(port: int, what: str, **asked: str):
    address = f"http://127.0.0.1:{port}/api/v1/{what}?{urllib.parse.urlencode(asked)}"
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)["data"]


def asked(port: int, expression: str) -> float:
    """The value of an expression, as soon as there is one."""
    while True:
        with suppress(OSError):
            if found := query(port, expression):
                return float(found[0]["value"][1])
        time.sleep(0.25)
