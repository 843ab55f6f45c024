"""The benchmark of routing's worth: its tasks, and what it says of them."""

from __future__ import annotations

from training import routed
from training.data.conversation import Calls, Model
from training.data.side import Side


def played(seconds: float, *, right: bool = True, light: bool = True) -> routed.Played:
    return routed.Played(seconds, right, True, ("one" if light else "two",))


def test_every_third_task_is_hard_and_all_differ():
    made = [routed.task(number) for number in range(12)]
    assert [routed.task(number) for number in range(12)] == made
    assert len({str(each.turns) for each in made}) == 12
    longest = [max(len(turn.steps) for turn in each.turns if isinstance(turn, Model)) for each in made]
    assert max(longest[2::3]) == 4  # three calls and an answer
    assert max(longest[0::3] + longest[1::3]) == 2
    assert all(isinstance(each.turns[1].steps[0], Calls) for each in made[2::3])


def test_tasks_are_none_that_was_trained_on():
    assert all(kind(routed.World("any", Side.HELD_OUT)) for kind in (*routed.LIGHT, *routed.HARD))
    assert len(routed.task(0).turns) == 2  # training goes on behind it


def test_the_total_time_is_compared_with_each_policy():
    found = {
        "default": [played(1.0), played(2.0, light=False)],
        "light, redone": [played(1.0), played(4.0, right=False)],
        "heavy": [played(1.0, light=False), played(1.5, light=False)],
    }
    text = routed.report(found, "one", "two")
    assert "| default | 3.00 | 100% | 100% | 50% |" in text
    assert "| light, redone | 5.00 | 50% | 100% | 100% |" in text
    assert "in 0.85 of heavy's time: 1.20, **missed**" in text
    assert "right at least as often as heavy, but for 2%: +0%, reached" in text
