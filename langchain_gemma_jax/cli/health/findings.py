"""Findings of a check: its subject, its result, a verdict, and advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on one subject."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    verdict: Verdict
    found: str
    advice: str = ""


def worst(findings: list[Finding]) -> Verdict:
    """Return the worst verdict of these findings."""
    verdicts = {finding.verdict for finding in findings}
    return next((each for each in (Verdict.BAD, Verdict.WARN) if each in verdicts), Verdict.OK)
