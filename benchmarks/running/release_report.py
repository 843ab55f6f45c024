"""The report of a release: a page with the losses first, and the raw results beside it, in ``reports/VERSION``.

Processors with other instructions win and lose elsewhere, so each class of them has a section of its own, with its
date. A run on one class leaves the sections of the others as they are.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.running.bars import Row
from benchmarks.running.earlier_run import changes
from benchmarks.running.report import bars_table, bullets, sections
from benchmarks.running.suite_plot import draw, share_of

METHOD = """\
Every program of the suite ran once, the engines of each in turns: in processes of their own, on the same cores, with as
many threads as cores. A ratio compares what ran in the same minutes. [How each figure is measured](../../README.md) and
with what each rival was driven; [what was tried and dropped](../../DECISIONS.md)."""


class ReportError(ValueError):
    """A report cannot be written or compared. The message says why, and what to do."""


@dataclass(frozen=True)
class Results:
    """A run of the suite on one class of processor."""

    processor_class: str
    machine: Mapping[str, Any]
    made: str  # the day
    others: float | None  # cores that were busy with something else
    versions: Mapping[str, str]
    rows: Mapping[str, Sequence[Row]]  # by the part of the suite
    problems: Mapping[str, str]  # of the parts that gave no bars

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Results:
        """Return the results that a run of the suite wrote.

        Raises:
            ReportError: they say nothing of the processor's class.
        """
        machine, parts = content["machine"], content["parts"]
        if "class" not in machine:
            raise ReportError(
                f"expected the class of the processor in the results, found {', '.join(machine)}: run make bench again."
            )
        return cls(
            processor_class=machine["class"],
            machine=machine,
            made=content["made"],
            others=content["others"],
            versions=content.get("versions", {}),
            rows={name: [Row(**each) for each in part["bars"]] for name, part in parts.items()},
            problems={name: part["problem"] for name, part in parts.items() if part["problem"]},
        )

    @property
    def name(self) -> str:
        """The class of the processor and the Python, by which results are comparable."""
        return f"{self.processor_class}, Python {self._python}"

    @property
    def folder(self) -> str:
        """The name of the folder of these results."""
        return f"{self.processor_class}-python{self._python}"

    @property
    def _python(self) -> str:
        return ".".join(self.machine["python"].split(".")[:2])

    @property
    def all_rows(self) -> list[Row]:
        """The rows of all parts."""
        return [row for rows in self.rows.values() for row in rows]


def write_report(reports: Path, version: str, content: Mapping[str, Any], raw: Sequence[Path] = ()) -> Path:
    """Write the results of a run into the report of a version, and renew its page; return the page.

    Args:
        reports: the folder of all reports.
        version: such as "0.2.0".
        content: what the suite wrote.
        raw: what its programs wrote, which is kept beside the page.

    Raises:
        ReportError: the version is none, or the results are of a run that cannot be reported.
    """
    release_numbers(version)  # or it is refused
    found = Results.of(content)
    folder = reports / version
    of_class = folder / found.folder
    of_class.mkdir(parents=True, exist_ok=True)
    (of_class / "results.json").write_text(json.dumps(content, indent=2) + "\n")
    (of_class / "bars.svg").write_text(draw([(f"{row.work}, {row.dtype}", row) for row in found.all_rows]))
    for each in raw:
        shutil.copy(each, of_class / each.name)
    page = folder / "README.md"
    page.write_text(page_of(version, reported(folder), previous(reports, version)))
    return page


def reported(folder: Path) -> list[Results]:
    """Return the results in the report of a version."""
    return [Results.of(json.loads(path.read_text())) for path in sorted(folder.glob("*/results.json"))]


def previous(reports: Path, version: str) -> Mapping[str, tuple[str, Results]]:
    """Return the newest earlier results of each class of processor and Python, with their version."""
    earlier = [
        path
        for path in reports.glob("*.*.*")
        if path.is_dir() and release_numbers(path.name) < release_numbers(version)
    ]
    found: dict[str, tuple[str, Results]] = {}
    for folder in sorted(earlier, key=lambda path: release_numbers(path.name)):
        for path in folder.glob("*/results.json"):
            results = Results.of(json.loads(path.read_text()))
            found[results.name] = folder.name, results
    return found


def page_of(version: str, every: Sequence[Results], before: Mapping[str, tuple[str, Results]]) -> str:
    """Return the page: the method, then each class of processor, its losses first."""
    parts = [_of_class(results, before.get(results.name)) for results in every]
    return sections(f"# Benchmarks of {version}", METHOD, *parts)


def losses(results: Results) -> list[Row]:
    """Return the bars that were missed, rivals that were faster, and what was not measured; the worst first."""

    def lost(row: Row) -> bool:
        slower = row.ratio is not None and row.ratio < 1 and row.bar.startswith("≥") and row.bar.endswith("×")
        return slower or not row.verdict.startswith("reached")

    def how_far(row: Row) -> float:
        share = share_of(row)
        return 1.0 if share is None else share

    return sorted(filter(lost, results.all_rows), key=how_far)


def _of_class(results: Results, before: tuple[str, Results] | None) -> str:
    lost, rows = losses(results), results.all_rows
    reached = sum(row.verdict.startswith("reached") for row in rows)
    return sections(
        f"## {results.name}",
        bullets(_facts(results)),
        f"### Losses\n\n{len(lost)} of {len(rows)} rows; {reached} bars were reached.",
        bars_table(lost) if lost else "None.",
        _compared(results, before),
        f"### Every bar\n\n![every bar]({results.folder}/bars.svg)",
        bars_table(rows),
    ).rstrip()


def _facts(results: Results) -> Iterator[str]:
    machine = results.machine
    used = "an unknown number of" if results.others is None else f"{results.others:.2f}"
    yield f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}"
    yield f"{results.made}; others used {used} cores meanwhile"
    yield from (f"{name}: {each}" for name, each in sorted(results.versions.items()))
    yield from (f"no bars of {name}: {problem}" for name, problem in results.problems.items())


def _compared(results: Results, before: tuple[str, Results] | None) -> str:
    if before is None:
        return "### Compared\n\nNo earlier report has this class of processor and this Python."
    version, then = before
    lines = list(changes([vars(row) for row in then.all_rows], results.all_rows))
    said = bullets(lines) if lines else "No ratio moved by more than a tenth, and no bar was won or lost."
    return f"### Compared with {version} ({then.made})\n\n{said}"


def release_numbers(version: str) -> tuple[int, ...]:
    """Return a release's numbers, by which releases are in order.

    Raises:
        ReportError: it is no release.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise ReportError(f"expected a version such as 0.2.0, found {version!r}.")
    return tuple(map(int, version.split(".")))
