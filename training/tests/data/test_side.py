import pytest

from training.data.side import Side, Split, side_of
from training.data.words import common, things
from training.data.world import World


def test_a_list_with_something_on_both_sides_is_refused():
    with pytest.raises(ValueError, match="b"):
        Split(("a", "b"), ("b", "c"))


def test_what_training_has_more_of_may_not_be_held_out():
    with pytest.raises(ValueError, match="c"):
        Split(("a",), ("b", "c"), ("c",))


def test_training_alone_has_more():
    words = Split(("a",), ("b",), ("c", "d"))
    picked = {side: [World(f"{number}", side).pick(words) for number in range(400)] for side in Side}
    assert set(picked[Side.HELD_OUT]) == {"b"}
    assert set(picked[Side.TRAIN]) == {"a", "c", "d"}
    assert 120 < picked[Side.TRAIN].count("a") < 280


def test_common_words_are_of_training():
    assert {side_of(word) for word in common.WORDS} == {Side.TRAIN}
    made = {side: {World(f"{number}", side).made_up() for number in range(400)} for side in Side}
    assert 100 < len(made[Side.TRAIN] & set(common.WORDS)) < 180
    assert not made[Side.HELD_OUT] & set(common.WORDS)
    assert set(things.NOUNS.more) <= set(common.WORDS)


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
