"""As small as will do, larger when it has to be, and no to and fro."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from langchain_gemma_jax.routing import Choice, Signals, default_policy

TWO = ("light", "heavy")
TALK = Signals(sizes=TWO, prompt_tokens=60)
WORK = Signals(sizes=TWO, tools=6, prompt_tokens=1500)


def sizes(*steps: Signals) -> list[str]:
    """The sizes of the steps of one conversation."""
    found: list[str] = []
    for step in steps:
        found.append(default_policy(replace(step, last=found[-1] if found else None)).size)
    return found


@pytest.mark.parametrize(
    ("signals", "size"),
    [
        (TALK, "light"),
        (WORK, "heavy"),
        (replace(TALK, structured=True), "heavy"),
        (replace(TALK, tools=1, forced=True), "heavy"),
        (replace(TALK, tools=2), "light"),
        (replace(TALK, prompt_tokens=6000), "heavy"),
    ],
)
def test_a_first_step_goes_by_what_it_asks(signals, size):
    assert default_policy(signals).size == size


def test_where_answers_are_judged_the_smallest_tries():
    judged = {"judged": True}
    assert sizes(replace(WORK, **judged), replace(WORK, **judged)) == ["light", "light"]
    assert default_policy(replace(WORK, **judged, last="heavy")).size == "heavy"
    assert default_policy(replace(WORK, **judged, last="light", failed=1)).size == "heavy"


def test_between_the_two_what_is_in_memory_is_taken():
    between = replace(TALK, tools=4, prompt_tokens=900)
    assert default_policy(between).size == "light"
    assert default_policy(replace(between, resident=frozenset({"heavy"}))).size == "heavy"
    assert default_policy(replace(TALK, resident=frozenset({"heavy"}))).size == "light"


def test_a_tool_loop_is_not_split():
    assert sizes(TALK, replace(TALK, tools=6, results=3)) == ["light", "light"]
    assert sizes(WORK, replace(TALK, results=1)) == ["heavy", "heavy"]


def test_unless_a_call_failed():
    failed = replace(TALK, tools=2, results=1, failed=1)
    assert sizes(TALK, failed, failed) == ["light", "heavy", "heavy"]


def test_small_talk_behind_work_stays_until_it_lasts():
    talks = [replace(TALK, quiet_turns=turns) for turns in range(4)]
    assert sizes(WORK, *talks) == ["heavy", "heavy", "heavy", "light", "light"]


def test_a_load_between_the_two_never_switches():
    between = replace(TALK, tools=4, prompt_tokens=900, quiet_turns=9)
    assert sizes(TALK, between, between) == ["light"] * 3
    assert sizes(WORK, between, between) == ["heavy"] * 3


def test_steps_that_alternate_do_not_make_sizes_alternate():
    steps = [WORK if number % 2 else TALK for number in range(50)]
    found = sizes(*steps)
    assert sum(one != other for one, other in pairwise(found)) == 1


def test_a_switch_that_takes_too_long_is_left_unless_something_failed():
    slow = replace(WORK, switch_s={"heavy": 100.0})
    assert sizes(TALK, slow) == ["light", "light"]
    assert sizes(TALK, replace(slow, results=1, failed=1)) == ["light", "heavy"]


def test_sizes_between_are_for_loads_between():
    three = replace(TALK, sizes=("small", "middle", "large"))
    assert default_policy(three).size == "small"
    assert default_policy(replace(three, tools=6)).size == "middle"
    assert default_policy(replace(three, structured=True, tools=6)).size == "large"


def test_every_reason_says_something():
    for signals in (TALK, WORK, replace(WORK, last="light"), replace(WORK, last="heavy", failed=1)):
        assert isinstance(default_policy(signals), Choice)
        assert len(default_policy(signals).reason) > 5
