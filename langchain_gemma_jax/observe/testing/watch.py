"""The pytest plugin itself: a meter around each test, limits that fail it, and a report at the end."""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.testing.costs import Limits, Meter

PREFIX = "gemma_jax_"  # of JUnit's properties
FORMAT = 1


class Watch:
    """Measures tests in the process that runs them, and writes the report in the process that pytest was started in."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files: list[str] = config.getoption("--gemma-jax-report")
        self._tests: list[dict[str, Any]] = []
        for name in self._files:  # checked now, and not after all tests have run
            try:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                with Path(name).open("a", encoding="utf-8"):
                    pass
            except OSError as error:
                raise pytest.UsageError(f"--gemma-jax-report: {name} cannot be written: {error.strerror}") from None

    def check(self, items: list[pytest.Item]) -> None:
        """Check the markers of all tests.

        Raises:
            UsageError: one has arguments that are no limits.
        """
        for item in items:
            self._limits(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure a test, and fail it if it costs more than it may."""
        limits = self._limits(item)
        if limits is None and not self._files:
            return (yield)
        with warnings.catch_warnings(), Meter(item.nodeid) as meter:
            warnings.simplefilter("ignore", GuardWarning)  # trips are counted here, and fail nothing by themselves
            try:
                found = yield
            finally:
                costs = meter.costs()
                for name, value in asdict(costs).items():
                    text = value if not isinstance(value, dict) else json.dumps(value)
                    item.user_properties.append((f"{PREFIX}{name}", text))
        if limits is not None and (passed := list(limits.passed_by(costs))):
            pytest.fail("\n".join(passed), pytrace=False)
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test's costs, from whichever process ran it."""
        properties = {
            name.removeprefix(PREFIX): value for name, value in report.user_properties if name.startswith(PREFIX)
        }
        if report.when == "call" and properties:
            for name in ("trips", "apps"):
                properties[name] = json.loads(str(properties[name]))
            self._tests.append({"app": report.nodeid, "outcome": report.outcome, **properties})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the reports."""
        if hasattr(self._config, "workerinput"):  # a worker of xdist: the process that started it writes the reports
            return
        for name in self._files:
            file = Path(name)
            text = markdown(self._tests) if file.suffix == ".md" else json.dumps(summary(self._tests), indent=1)
            try:
                file.write_text(text + "\n", encoding="utf-8")
            except OSError as error:
                session.exitstatus = pytest.ExitCode.USAGE_ERROR
                self._config.get_terminal_writer().line(f"--gemma-jax-report: {name}: {error.strerror}")

    def _limits(self, item: pytest.Item) -> Limits | None:
        if (marker := item.get_closest_marker("gemma_jax")) is None:
            return None
        try:
            return Limits.of(marker.args, marker.kwargs)
        except InputError as error:
            raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.gemma_jax: {error}") from None


def summary(tests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report as values: all tests, and their sums."""
    trips: dict[str, int] = {}
    apps: dict[str, dict[str, int]] = {}
    for test in tests:
        for kind, count in test["trips"].items():
            trips[kind] = trips.get(kind, 0) + count
        for app, kinds in test["apps"].items():
            own = apps.setdefault(app, {})
            for kind, count in kinds.items():
                own[kind] = own.get(kind, 0) + count
    sums = {name: sum(test[name] for test in tests) for name in ("compiles", "compile_s", "transfer_bytes")}
    return {"format": FORMAT, "tests": tests, "sums": {**sums, "trips": trips}, "apps": apps}


def markdown(tests: list[dict[str, Any]]) -> str:
    """Return the report as a table, the most expensive test first."""
    sums = summary(tests)["sums"]
    trips = sum(sums["trips"].values())
    lines = [
        "# What JAX cost the tests",
        "",
        (
            f"{len(tests)} tests: {sums['compiles']} programs compiled in {sums['compile_s']:.1f} s, "
            f"{sums['transfer_bytes']} bytes copied unasked, guards tripped {trips} times."
        ),
        "",
        "| app | outcome | compiles | seconds | bytes unasked | trips |",
        "|---|---|---:|---:|---:|---|",
    ]
    for test in sorted(tests, key=lambda each: (-sum(each["trips"].values()), -each["compile_s"], each["app"])):
        numbers = f"{test['compiles']} | {test['compile_s']:.2f} | {test['transfer_bytes']}"
        lines.append(f"| {_code(test['app'])} | {test['outcome']} | {numbers} | {_in_words(test['trips'])} |")
    if apps := summary(tests)["apps"]:
        lines += ["", "Of these, by application:", "", "| app | trips |", "|---|---|"]
        lines += [f"| {_code(app)} | {_in_words(kinds)} |" for app, kinds in sorted(apps.items())]
    return "\n".join(lines)


def _code(name: str) -> str:
    escaped = name.replace("|", "\\|")
    return f"`{escaped}`"


def _in_words(trips: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in trips.items()) or "-"
