"""Findings: what was looked at, what was found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How well something is."""

    OK = "ok"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    verdict: Verdict
    found: str
    advice: str = ""


def worst(findings: list[Finding]) -> Verdict:
    """Return the verdict over all."""
    verdicts = {finding.verdict for finding in findings}
    return next((each for each in (Verdict.BAD, Verdict.WARN) if each in verdicts), Verdict.OK)
