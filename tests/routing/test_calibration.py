"""How far a model's own probabilities can be believed."""

from __future__ import annotations

import math

import pytest

from langchain_gemma_jax.models.configuration.embedded import EMBEDDED
from langchain_gemma_jax.routing import Route
from langchain_gemma_jax.routing.calibration import ENOUGH, KNOWN, Calibration


def test_an_answers_probability_becomes_that_of_its_being_right():
    judge = Calibration(calls=2.0, words=0.5)
    assert math.isclose(judge.right(math.log(0.5), calls=True), 0.25)
    assert math.isclose(judge.right(math.log(0.25), calls=False), 0.5)
    assert Calibration().right(-100.0, calls=False) == 1.0
    assert judge.right(1e-9, calls=True) == 1.0  # rounding


def test_who_is_judged_and_how():
    assert set(KNOWN) == set(EMBEDDED)
    route = Route(light="sprout-s", middle="./a", heavy="sprout-m")
    assert route.judge("light") == KNOWN["sprout-s"]
    assert route.judge("middle") is None
    assert route.judge("heavy") is None, "nobody could take over"
    assert (route.enough, route.judged) == (ENOUGH, False)
    own = Route(light="sprout-s", middle="./a", heavy="./b", calibration={"middle": Calibration(3.0)}, confidence=0.5)
    assert own.judge("middle") == Calibration(3.0)
    assert (own.enough, own.judged) == (0.5, True)
    assert Route(light="./a", heavy="./b", confidence=0.5).judge("light") == Calibration()


@pytest.mark.parametrize(
    "given", [{"calls": 0}, {"calls": None}, {"words": -1}, {"calls": math.nan}, {"words": True}, {"words": 10**400}]
)
def test_what_is_no_calibration_is_refused(given):
    with pytest.raises(ValueError, match="calibration: expected a number above 0"):
        Calibration(**given)
