import pytest

from training.data.side import Side, Split, side_of
from training.data.world import World


def test_a_list_with_something_on_both_sides_is_refused():
    with pytest.raises(ValueError, match="b"):
        Split(("a", "b"), ("b", "c"))


def test_a_list_without_a_side_is_refused():
    with pytest.raises(ValueError, match="empty"):
        Split(("a",), ())


def test_case_does_not_change_the_side():
    words = [f"word{index}" for index in range(100)]
    assert [side_of(word) for word in words] == [side_of(word.upper()) for word in words]
    assert {side_of(word) for word in words} == set(Side)


@pytest.mark.parametrize("side", Side)
def test_what_is_made_up_is_of_its_side(side):
    w = World("seed", side)
    assert {side_of(w.made_up()) for _ in range(200)} == {side}


def test_the_same_seed_gives_the_same_world():
    assert World("a", Side.TRAIN).made_up() == World("a", Side.TRAIN).made_up() != World("b", Side.TRAIN).made_up()


def test_no_word_is_made_up_that_the_standard_suite_says():
    w = World("seed", Side.TRAIN)
    made = iter(["haiku", "weather", "zorb", "zarb", "zirb", "zurb", "zyrb"])
    assert w.mine(lambda: next(made)).startswith("z")
