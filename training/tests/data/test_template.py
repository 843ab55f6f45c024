from random import Random

import pytest

from training.data.template import expand, parse, slots_of


def everything(template, **slots):
    return {expand(template, Random(seed), slots) for seed in range(60)}


def test_alternatives_may_be_nested_and_empty():
    assert everything("a[b|c[d|]|]{x}", x="!") == {"ab!", "acd!", "ac!", "a!"}


def test_a_bar_outside_of_brackets_is_a_bar():
    assert everything("a|b") == {"a|b"}


def test_what_is_filled_in_is_not_read_again():
    assert everything("{x}", x="[a|b]{y}") == {"[a|b]{y}"}


def test_the_slots_of_a_template():
    assert slots_of("{a} [x {b}|{c}] {a}") == {"a", "b", "c"}


@pytest.mark.parametrize("template", ["[a|b", "a]b", "{a"])
def test_brackets_that_do_not_match_are_refused(template):
    with pytest.raises(ValueError, match=r"expected|substring"):
        parse(template)
