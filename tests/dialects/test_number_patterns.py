"""Patterns of numbers against numbers."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest

from langchain_gemma_jax.dialects.number_patterns import DIGITS, decimal, multiples, whole
from langchain_gemma_jax.engine.grammar.pattern import regex


def compiled(pattern):
    return re.compile(re.sub(r"\\x\{([0-9A-F]+)\}", lambda found: re.escape(chr(int(found[1], 16))), regex(pattern)))


@pytest.mark.parametrize("seed", range(200))
def test_whole_numbers_between_two_bounds(seed):
    rng = random.Random(seed)
    low = rng.choice(
        [None, rng.randint(-2000, 2000), rng.randint(-(10 ** rng.randint(0, 20)), 10 ** rng.randint(0, 20))]
    )
    high = rng.choice([None, rng.randint(-2000, 2000), (low or 0) + rng.randint(0, 300)])
    pattern = whole(low, high)
    if pattern is None:
        assert low > high
        return
    reader = compiled(pattern)
    near = [bound + step for bound in (low or 0, high or 0) for step in (-10, -1, 0, 1, 9, 10)]
    for value in [0, -1, 1, *near, *(rng.randint(-3000, 3000) for _ in range(20))]:
        inside = (low is None or value >= low) and (high is None or value <= high)
        assert bool(reader.fullmatch(str(value))) == inside, (low, high, value)
    assert not any(reader.fullmatch(text) for text in ("-0", "00", "01", "", "-", "+1", "1.0"))


@pytest.mark.parametrize("seed", range(200))
def test_numbers_between_two_bounds(seed):
    rng = random.Random(seed)

    def some():
        return Decimal(rng.randint(-3000, 3000)).scaleb(-rng.randint(0, 3))

    low = rng.choice([None, some()])
    high = rng.choice([None, some(), (low or Decimal(0)) + Decimal(rng.randint(0, 50)).scaleb(-2)])
    places = rng.choice([None, 0, 1, 2, 4])
    pattern = decimal(low, high, places)
    if pattern is None:
        return
    reader = compiled(pattern)
    for _ in range(40):
        value = rng.choice([low, high, some(), (low or 0) + Decimal(rng.randint(-20, 20)).scaleb(-2)])
        if value is None:
            continue
        text = f"{value:f}".replace("-0.000", "0").replace("-0.00", "0") if not value else f"{value:f}"
        text = text.removeprefix("-") if not value else text
        inside = (low is None or value >= low) and (high is None or value <= high)
        fits = len(text.partition(".")[2]) <= (DIGITS if places is None else places)
        assert bool(reader.fullmatch(text)) == (inside and fits), (low, high, places, text)


@pytest.mark.parametrize("step", [1, 2, 4, 5, 10, 20, 25, 50, 100, 125, 1000])
def test_multiples_that_the_last_digits_tell(step):
    reader = compiled(multiples(Decimal(step), negative=True, zero=True))
    assert all(bool(reader.fullmatch(str(value))) == (value % step == 0) for value in range(-3000, 3000))
    positive = compiled(multiples(Decimal(step), negative=False, zero=False))
    assert not any(positive.fullmatch(str(value)) for value in range(-3000, 1))


@pytest.mark.parametrize("step", ["0.5", "0.25", "0.2", "0.05", "0.125", "0.1", "0.50"])
def test_fractions_too(step):
    reader, places = compiled(multiples(Decimal(step), negative=True, zero=True)), len(step.rstrip("0")) - 2
    for count in range(-3000, 3000):
        value = Decimal(count).scaleb(-places)
        text = f"{value:f}" if value else "0"
        assert bool(reader.fullmatch(text)) == (value % Decimal(step) == 0), text
    assert not any(reader.fullmatch(text) for text in ("-0", "0.0", "00", ".5", "1.", ""))


@pytest.mark.parametrize("step", ["3", "7", "60", "999", "10000", "0.3", "1.5", "0.0001"])
def test_others_are_not_told(step):
    assert multiples(Decimal(step), negative=True, zero=True) is None
