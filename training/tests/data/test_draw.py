"""What is made up belongs to one side, however it is put together."""

import re

from training.data import draw
from training.data.side import Side, side_of, written
from training.data.world import _CODAS, _ONSETS, _VOWELS, World


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


def test_in_training_some_words_are_made_as_real_ones_are_and_each_is_of_its_side():
    made = {side: {World(f"{number}", side).made_up() for number in range(400)} for side in Side}
    plain = re.compile(f"(?:(?:{'|'.join(_ONSETS)})(?:{'|'.join(_VOWELS)}))+(?:{'|'.join(_CODAS)})?")
    assert all(plain.fullmatch(word) for word in made[Side.HELD_OUT])
    assert 0.2 < sum(not plain.fullmatch(word) for word in made[Side.TRAIN]) / len(made[Side.TRAIN]) < 0.5
    assert all(side_of(word) is side for side in Side for word in made[side])
