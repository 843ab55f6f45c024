"""The benchmark of grammars: what it says."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from benchmarks.engine import constrained
from benchmarks.running.command import PAGE


@dataclass(frozen=True)
class Times:
    first_token_s: float
    total_s: float


@dataclass(frozen=True)
class Done:
    """As much of a completion as the report looks at."""

    generated_tokens: int
    forced_tokens: int
    timings: Times


def answers(*seconds_a_token: float, forced: int = 0) -> list[Done]:
    return [Done(11, forced, Times(1.0, 1.0 + 10 * seconds)) for seconds in seconds_a_token]


FOUND = {
    "free": answers(0.02, 0.04, 0.02),
    "easy": answers(0.021, 0.042, 0.03),
    "hard": answers(0.04, 0.08, 0.04),
    "call": answers(0.01, 0.02, 0.01, forced=9),
}


def test_ratios_are_those_of_a_round():
    text = constrained.report(FOUND, "bfloat16", 0.25)
    assert "| easy | 30.0 | 1.05 | 0% |" in text
    assert "| call | 10.0 | 0.50 | 82% |" in text
    assert "token costs: 1.05, reached" in text
    assert "free tokens: 0.50, reached" in text


def test_a_missed_bar_is_said_so():
    text = constrained.report(FOUND | {"easy": FOUND["hard"], "call": FOUND["hard"]}, "bfloat16", None)
    assert text.count("2.00, **missed**") == 2


@pytest.mark.parametrize("work", ["easy", "hard", "call"])
def test_every_work_fits_its_tokens(work):
    assert constrained.GRAMMARS[work].root is not None


def test_the_page_has_its_place():
    assert PAGE.read_text().count(constrained.BLOCK.begin) == 1
