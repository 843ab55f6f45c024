"""Several sizes to choose from."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.routing import Choice, Route, Signals, default_policy

ROUTE = Route(light="./a", middle="./b", heavy="./c")


def test_sizes_are_in_the_order_in_which_they_are_given():
    assert ROUTE.names == ("light", "middle", "heavy")
    assert ROUTE.larger("light") == "middle"
    assert ROUTE.larger("heavy") is None
    assert ROUTE.name_of("./b") == "middle"
    assert ROUTE.name_of("./d") is None
    assert ROUTE.policy is default_policy
    assert Route(light="./a", middle="./b", heavy="./c") == ROUTE


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "two or more"),
        ({"light": "./a"}, "two or more"),
        ({"light": "./a", "heavy": "./a"}, "that differ"),
        ({"light": "./a", "heavy": "auto"}, "'heavy'"),
        ({"light": "./a", "heavy": ""}, "'heavy'"),
        ({"light": "./a", "heavy": 3}, "'heavy'"),
        ({"light": "./a", "heavy": "./b", "confidence": 1.5}, "confidence"),
        ({"light": "./a", "heavy": "./b", "policy": "heavy"}, "policy"),
    ],
)
def test_what_is_no_route_is_refused(given, match):
    with pytest.raises(InputError, match=match):
        Route(**given)


@pytest.mark.parametrize("said", ["heavy", Choice("huge", "why not"), None])
def test_a_policy_that_gives_no_choice_is_named(said):
    route = Route(light="./a", heavy="./b", policy=lambda _: said)
    with pytest.raises(InputError, match="expected the policy to give a Choice of light, heavy"):
        route.choose(Signals(sizes=route.names))
