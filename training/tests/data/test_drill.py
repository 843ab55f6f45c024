"""Drills hold what they ask for: nothing is to be foreseen that does not stand before."""

import pytest

from training.data.drill import Text, drill

TOKENS = range(16, 4096)


@pytest.fixture(scope="module")
def drills():
    return [drill(f"drill/{index}", TOKENS, 2) for index in range(200)]


def test_a_drill_depends_on_its_seed_alone(drills):
    assert drill("drill/7", TOKENS, 2) == drills[7]
    assert drills[7] != drills[8]


def test_a_drill_begins_as_every_text_and_has_no_control_tokens(drills):
    for each in drills:
        assert each.ids[0] == 2
        assert not each.follows[0]
        assert set(each.ids[1:]) <= set(TOKENS)
        assert len(each.ids) == len(each.follows) == each.ends[-1]


def test_all_that_is_to_be_foreseen_was_there_before(drills):
    for each in drills:
        for place, follows in enumerate(each.follows):
            assert not follows or each.ids[place] in each.ids[:place]
    assert sum(sum(each.follows) for each in drills) > 0.25 * sum(len(each.ids) for each in drills)


def test_most_of_it_continues_something_that_was_said_before(drills):
    """The token before one that is to be foreseen, and that one, mostly stood side by side already."""
    known = total = 0
    for each in drills:
        pairs = list(zip(each.ids, each.ids[1:], strict=False))
        for place, pair in enumerate(pairs, 1):
            if each.follows[place]:
                total += 1
                known += pair in pairs[: place - 1]
    assert known > 0.8 * total


def test_a_text_is_cut_where_it_may_end():
    text = Text([2, 20, 21, 22, 23], [False, True, True, True, True], [2, 4, 5])
    assert text.within(5) is text
    assert text.within(4).ids == [2, 20, 21, 22]
    assert text.within(3).ids == [2, 20]
    assert text.within(1) is None
