"""What is made up belongs to one side, however it is put together."""

from training.data import draw
from training.data.side import Side, side_of, written
from training.data.world import World


def test_words_run_together_are_of_the_same_side():
    flat = {
        side: {draw.label(("mif", "lis"), World(f"{number}", side)) for number in range(400)} - {"mif_lis"}
        for side in Side
    }
    assert not flat[Side.TRAIN] & flat[Side.HELD_OUT]
    assert all(side_of(name) is side for side in Side for name in flat[side])


def test_words_run_together_are_none_that_must_not_be_said():
    names = {draw.label(("pi", "rate"), World(f"{number}", side)) for number in range(400) for side in Side}
    assert names == {"pi_rate"}


def test_nothing_made_up_is_a_word_of_a_list():
    assert "date" in written()
    for side in Side:
        assert not World("seed", side).may_say("Date")
