"""The tools that stand beside the right one."""

import pytest

from training.data.side import Side
from training.data.tools import make_tool, others
from training.data.world import World


def share(side, same):
    found = []
    for number in range(200):
        w = World(f"others/{number}", side)
        wanted = make_tool(w)
        found += [same(each, wanted) for each in others(w, wanted, 7)]
    return sum(found) / len(found)


def test_in_training_more_of_them_do_the_same_to_something_else():
    def does_the_same(other, wanted):
        return other.verb == wanted.verb and other.noun != wanted.noun

    held_out, taught = (share(side, does_the_same) for side in (Side.HELD_OUT, Side.TRAIN))
    assert held_out == pytest.approx(0.25, abs=0.06)
    assert taught > held_out + 0.15


@pytest.mark.parametrize("side", Side)
def test_some_are_about_the_same_thing(side):
    assert share(side, lambda other, wanted: other.noun == wanted.noun) == pytest.approx(0.25, abs=0.08)
