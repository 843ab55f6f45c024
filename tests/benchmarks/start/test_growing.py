"""The bars of growing turns: what they compare, and that a missing rival is said."""

from __future__ import annotations

from benchmarks.start.growing import Turns, rows
from benchmarks.work.growing_turns import ANSWER, PROMPTS, prompts


def test_each_prompt_begins_with_the_one_before_and_its_answer():
    added = list(map(len, prompts()))
    assert sum(added) + ANSWER * (len(PROMPTS) - 1) == PROMPTS[-1]
    assert list(prompts()) == list(prompts()), "all contenders get the same"


def test_bars_compare_with_the_rivals_seconds_and_count_programs():
    cold, after, theirs = Turns((20.0, 10.0), (5, 1)), Turns((8.0, 7.0), (0, 0)), Turns((10.0, 10.0))
    found = {row.work: row for row in rows(cold, after, theirs)}
    assert found["ten turns, nothing compiled"].ratio == 1.5
    assert found["ten turns, nothing compiled"].verdict.startswith("reached")
    assert found["ten turns, next process"].ratio == 0.75
    assert found["programs compiled in ten turns"].verdict.startswith("reached")
    worse = rows(Turns((31.0,), (5, 2)), Turns((17.0,), (0,)), Turns((20.0,)))
    assert ["missed" in row.verdict for row in worse] == [True, True, True]
    alone = rows(cold, after, None)
    assert all("not measured" in row.verdict for row in alone[:2])
