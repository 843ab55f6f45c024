"""A service's objectives: read from a file, each name and number checked; an error names its line.

It imports no other room but ``errors``.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from langchain_gemma_jax.errors import InputError

FIRST = "gemma_jax_time_to_first_token_seconds"
BOUNDS = (0.1, 0.2, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0)  # of the histogram
LABELS = ("model", "scope", "app")


@dataclass(frozen=True)
class Kind:
    """A kind of objective: the shares or the level that it is about, and whom it is measured for."""

    alert: str  # the name of its alerts, without what all begin with
    title: str
    missed: str  # a sentence about what is missed
    runbook: str  # where to look first
    bad: str = ""  # the counter of what counts against it; "": what is not good
    good: str = ""
    of: str = ""  # the counter of all
    level: str = ""  # what is measured instead of a share
    numbers: tuple[str, ...] = ("goal",)
    labels: tuple[str, ...] = LABELS  # that it can be measured by
    excused: bool = False  # the first minutes of a process do not count

    @property
    def known(self) -> tuple[str, ...]:
        """The names that a file may give it."""
        return self.numbers if self.level else (*self.numbers, "pages", *(("by",) if self.labels else ()))


def _first_token(alert: str, title: str, missed: str, runbook: str, start: str, *, excused: bool = False) -> Kind:
    return Kind(
        alert,
        title,
        missed,
        runbook,
        good=f'{FIRST}_bucket{{start="{start}", le="WITHIN"}}',
        of=f'{FIRST}_count{{start="{start}"}}',
        numbers=("goal", "within"),
        excused=excused,
    )


KINDS = {
    "availability": Kind(
        "Availability",
        "Requests end well",
        "of the requests failed or were refused",
        "requests-fail",
        bad='gemma_jax_requests_by_result_total{result=~"failed|refused"}',
        of='gemma_jax_requests_by_result_total{result!="cancelled"}',
        labels=("model",),
    ),
    "steady_first_token": _first_token(
        "SteadyGoal",
        "Steady first tokens come in time",
        "of the first tokens of steady requests came after more than WITHIN s",
        "slow-first-tokens",
        "steady",
    ),
    "first_token": _first_token(
        "FirstToken",
        "Most first tokens come soon",
        "of the first tokens of steady requests came after more than WITHIN s",
        "slow-first-tokens",
        "steady",
    ),
    "cold_first_token": _first_token(
        "ColdGoal",
        "Cold first tokens come in time",
        "of the first tokens of cold requests came after more than WITHIN s",
        "cold-spikes",
        "cold",
        excused=True,
    ),
    "cold_starts": Kind(
        "ColdStarts",
        "Requests find their programs",
        "of the requests needed programs that had never run in their process",
        "cold-spikes",
        bad="gemma_jax_cold_starts_total",
        of="gemma_jax_requests_total",
        excused=True,
    ),
    "cache_hits": Kind(
        "CacheHits",
        "Programs are on the disk",
        "of the programs were not on the disk",
        "cache-trouble",
        bad="gemma_jax_compile_cache_misses_total",
        of="gemma_jax_compile_cache_misses_total + gemma_jax_compile_cache_hits_total",
        labels=(),
        excused=True,
    ),
    "utilization": Kind(
        "Underused",
        "Devices have work",
        "of the time had work for the device",
        "an-idle-device",
        level="utilization",
        numbers=("least",),
    ),
    "device_memory": Kind(
        "DeviceMemory",
        "Device memory has room",
        "of what models may take is taken",
        "out-of-memory",
        level="device_memory",
        numbers=("most",),
    ),
}


@dataclass(frozen=True)
class Objective:
    """One promise."""

    name: str
    percent: float  # the goal, or the bound of a level
    within: float | None = None  # seconds
    pages: bool = False  # a fast burn pages the person on call
    by: tuple[str, ...] = ()  # labels that it is measured by, besides the job

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    @property
    def allowed(self) -> float:
        """The share that may be missed."""
        return round(1 - self.percent / 100, 9)

    def filled(self, text: str) -> str:
        """Return a text with this objective's seconds in it."""
        return text if self.within is None else text.replace("WITHIN", f"{self.within:g}")

    @property
    def promise(self) -> str:
        """The numbers in words."""
        if self.kind.level:
            side = "at least" if "least" in self.kind.numbers else "at most"
            return f"{side} {self.percent:g} %"
        within = "" if self.within is None else f" within {self.within:g} s"
        return f"{self.percent:g} %{within}"


@dataclass(frozen=True)
class Objectives:
    """The promises of a service."""

    all: tuple[Objective, ...]
    at_least: float  # of requests, or programs, within an hour: below that there is no alert


def read_objectives(file: str | os.PathLike[str]) -> Objectives:
    """Return the objectives of a file.

    Raises:
        InputError: it cannot be read, or has a name or a number that no objective has. The message has the line.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InputError(f"{path}: expected a file of objectives: {reason}.") from None
    return objectives_of(text, str(path))


def objectives_of(text: str, where: str) -> Objectives:
    """Return the objectives of a text; ``where`` is its name, for errors.

    Raises:
        InputError: it has a name or a number that no objective has.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: expected TOML: {error}.") from None
    reader = _Reader(where, _lines_of(text))
    at_least = reader.number(found, "", "at_least", 0, None, 20)
    for name in found:
        if name not in KINDS and name != "at_least":
            reader.refuse("", name, f"expected one of {', '.join((*KINDS, 'at_least'))}, found {name!r}")
    return Objectives(tuple(reader.objective(name, found[name]) for name in KINDS if name in found), at_least)


class _Reader:
    """Checks what a file says."""

    def __init__(self, where: str, lines: Mapping[tuple[str, str], int]) -> None:
        self._where, self._lines = where, lines

    def refuse(self, section: str, name: str, problem: str) -> NoReturn:
        """Raise the error about a name of a section."""
        line = self._lines.get((section, name), self._lines.get((section, ""), 1))
        raise InputError(f"{self._where}, line {line}: {problem}.")

    def objective(self, name: str, table: object) -> Objective:
        """Return an objective."""
        kind = KINDS[name]
        if not isinstance(table, dict):
            self.refuse("", name, f"expected a table [{name}] with {', '.join(kind.known)}, found {table!r}")
        for key in table:
            if key not in kind.known:
                self.refuse(name, key, f"[{name}]: expected {', '.join(kind.known)}, found {key!r}")
        for key in kind.numbers:
            if key not in table:
                self.refuse(name, "", f"[{name}]: expected {key} = ..., found nothing of that name")
        share = kind.numbers[0]
        percent = self.number(table, name, share, 0, 100, 0)
        pages, by = table.get("pages", False), table.get("by", [])
        if not isinstance(pages, bool):
            self.refuse(name, "pages", f"[{name}] pages: expected true or false, found {pages!r}")
        if not isinstance(by, list) or not set(map(str, by)) <= set(kind.labels):
            self.refuse(name, "by", f"[{name}] by: expected a list of {', '.join(kind.labels)}, found {by!r}")
        within = None
        if "within" in kind.numbers:
            within = self.number(table, name, "within", 0, None, 0)
            if within not in BOUNDS:
                bounds = ", ".join(f"{bound:g}" for bound in BOUNDS)
                self.refuse(
                    name, "within", f"[{name}] within: expected a bound of the histogram, {bounds}, found {within:g}"
                )
        return Objective(name, percent, within, pages, tuple(by))

    def number(
        self, table: Mapping[str, object], section: str, name: str, low: float, high: float | None, default: float
    ) -> float:
        """Return a number that lies between two others."""
        value, where = table.get(name, default), f"[{section}] {name}" if section else name
        possible = "a number above 0" if high is None else f"percent above {low:g} and below {high:g}"
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low < float(value) < (float("inf") if high is None else high):  # type: ignore[arg-type]
            self.refuse(section, name, f"{where}: expected {possible}, found {value!r}")
        return float(value)  # type: ignore[arg-type]


def _lines_of(text: str) -> dict[tuple[str, str], int]:
    """Return the line of each section, under ``(section, "")``, and of each name in it."""
    section, found = "", {}
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*([^\]]+?)\s*\]", line):
            section = header[1].strip("\"'")
            found[section, ""] = found["", section] = number
        elif name := re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line):
            found[section, name[1]] = number
    return found
