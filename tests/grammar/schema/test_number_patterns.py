"""Terminals of numbers against numbers."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from langchain_gemma_jax.dialects import json_grammar
from langchain_gemma_jax.errors import SchemaError
from langchain_gemma_jax.grammar.reading import Reading
from langchain_gemma_jax.grammar.schema import number_patterns
from langchain_gemma_jax.grammar.schema.number_patterns import DIGITS, decimal, whole
from tests.dialects.walks import takes


def some(rng):
    return Decimal(rng.randint(-3000, 3000)).scaleb(-rng.randint(0, 3))


def test_whole_numbers_between_two_bounds():
    for seed in range(60):
        rng = random.Random(seed)
        far = 10 ** rng.randint(0, 20)
        low = rng.choice([None, rng.randint(-2000, 2000), rng.randint(-far, far)])
        high = rng.choice([None, rng.randint(-2000, 2000), (low or 0) + rng.randint(0, 300)])
        terminal = whole(low, high)
        if terminal is None:
            assert low > high
            continue
        reading = Reading(terminal)
        near = [bound + step for bound in (low or 0, high or 0) for step in (-10, -1, 0, 1, 9, 10)]
        for value in [0, -1, 1, *near, *(rng.randint(-3000, 3000) for _ in range(20))]:
            inside = (low is None or value >= low) and (high is None or value <= high)
            assert reading.fits(str(value)) == inside, (low, high, value)
        assert not any(reading.fits(text) for text in ("-0", "00", "01", "", "-", "+1", "1.0"))


def test_numbers_between_two_bounds():
    for seed in range(60):
        rng = random.Random(seed)
        low = rng.choice([None, some(rng)])
        high = rng.choice([None, some(rng), (low or Decimal(0)) + Decimal(rng.randint(0, 50)).scaleb(-2)])
        above, below = (rng.random() < 0.3 and bound is not None for bound in (low, high))
        terminal = decimal(low, high, above=above, below=below)
        if terminal is None:
            assert low > high or (low == high and (above or below))
            continue
        reading = Reading(terminal)
        for _ in range(40):
            value = rng.choice([low, high, some(rng), (low or 0) + Decimal(rng.randint(-20, 20)).scaleb(-2)])
            if value is None:
                continue
            text = f"{value:f}" if value else "0"
            inside = (low is None or value > low or (value == low and not above)) and (
                high is None or value < high or (value == high and not below)
            )
            assert reading.fits(text) == inside, (low, high, above, below, text)
            assert reading.fits(text + ("0" if "." in text else ".0")) == inside
        assert not any(reading.fits(text) for text in ("-0", "-0.0", "00", ".5", "1.", "", "1e3"))


@pytest.mark.long
def test_what_is_excluded_is_excluded_as_a_float_too():
    """A number with so many digits that it is read as the bound itself."""
    for bound in (1.0, 0.1, 0.30000000000000004, 123456.789, 9999999999.5, -2.5, 1e-9):
        for word, near in (("exclusiveMaximum", -1), ("exclusiveMinimum", 1)):
            grammar = json_grammar({"type": "number", word: bound})
            for digits in range(1, 25):
                text = f"{Decimal(bound) + near * Decimal(10) ** -digits:.{digits}f}"
                if takes(grammar, text):
                    assert (float(text) < bound) if near < 0 else (float(text) > bound), (bound, text)
            assert not takes(grammar, repr(bound))
            assert takes(grammar, "-99999.5" if near < 0 else "99999999999.5")


def test_numbers_of_which_nobody_says_how_large_they_are():
    assert DIGITS == 15
    for kind, yes, no in (("integer", "-" + "9" * 18, "1" * 19), ("number", "9" * 15 + "." + "1" * 15, "1" * 16)):
        grammar = json_grammar({"type": kind})
        assert takes(grammar, yes)
        assert not takes(grammar, no)


@pytest.mark.long
def test_multiples():
    for step in (2, 3, 7, 25, 60, 999, 0.5, 0.25, 0.01, 2.5, 1.5):
        for kind in ("integer", "number"):
            grammar = json_grammar({"type": kind, "multipleOf": step})
            rng = random.Random(str(step))
            for _ in range(60):
                value = rng.choice([rng.randint(-3000, 3000), rng.randint(-30, 30) * Decimal(str(step))])
                fits = value % Decimal(str(step)) == 0 and (kind == "number" or value == int(value))
                text = str(int(value)) if value == int(value) else f"{Decimal(value).normalize():f}"
                assert takes(grammar, text) == fits, (step, kind, text)


def test_multiples_between_bounds_and_of_several_numbers():
    both = json_grammar({"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}], "exclusiveMaximum": 36})
    assert [value for value in range(-13, 60) if takes(both, str(value))] == [-12, 0, 12, 24]
    one = json_grammar({"type": "number", "multipleOf": 0.25, "minimum": -0.6, "exclusiveMaximum": 0.5})
    texts = [f"{Decimal(count) / 100:f}" for count in range(-100, 100)]
    assert {float(text) for text in texts if takes(one, text)} == {-0.5, -0.25, 0, 0.25}
    for schema, problem in (
        ({"multipleOf": 7, "minimum": 15, "maximum": 20}, "no value fits"),
        ({"multipleOf": 1009}, "multipleOf 1009: a grammar cannot promise"),
        ({"multipleOf": 0.07}, "multipleOf 0.07: a grammar cannot promise"),
        ({"multipleOf": 3, "maximum": 2**60}, "multipleOf 3: a grammar cannot promise"),
    ):
        try:
            json_grammar({"type": "number"} | schema)
        except SchemaError as error:
            assert error.problem.startswith(problem)  # noqa: PT017
        else:
            raise AssertionError(schema)
    assert takes(json_grammar({"type": "number", "multipleOf": 1.0, "maximum": 2**60}), str(2**60))


def test_only_numbers_without_bounds_are_remembered():
    assert whole(None, None) is whole(None, None)
    kept = number_patterns._without_bounds.cache_info().currsize
    for low in range(50):  # a tenant's: how long they take would tell another tenant of them
        whole(low, None)
        decimal(Decimal(low), None)
    assert number_patterns._without_bounds.cache_info().currsize == kept
    assert number_patterns._written(None, None, 18, 0) is not whole(None, None)
