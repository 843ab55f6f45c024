"""Conversations in host memory: never more than was allowed, the oldest go first, and each model has its own."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident


def conversation(ids, scope="", whole=None):
    """A conversation with one page of each kind, of its own if none is given."""
    return Resident(scope, 64, token_keys(ids), whole=[whole or object()], local={0: object()})


@pytest.fixture
def parked():
    found = HostIndex(30)
    for model in "ab":
        found.opened(model, Paging(64, 32), PageSizes(8, 2))
    return found


def test_the_oldest_make_room_whoever_they_belong_to(parked):
    first, second, third, fourth = (conversation([number]) for number in range(4))
    for model, one in (("a", first), ("b", second), ("a", third)):
        parked.add(model, one)
    assert parked.nbytes() == 30
    parked.add("b", fourth)
    assert [one in parked for one in (first, second, third, fourth)] == [False, True, True, True]
    assert (parked.nbytes(), parked.nbytes("a"), parked.nbytes("b")) == (30, 10, 20)


def test_a_page_that_several_have_counts_once_and_goes_with_the_last(parked):
    shared = object()
    first, second, third = (conversation([number], whole=shared) for number in range(3))
    for one in (first, second, third):
        parked.add("a", one)
    assert parked.nbytes() == 8 + 3 * 2
    parked.take(first)
    assert parked.nbytes() == 8 + 2 * 2
    parked.take(second)
    parked.take(third)
    assert parked.nbytes() == 0


def test_what_a_later_one_goes_on_from_is_of_no_use_any_more(parked):
    early, other, branch = conversation([1, 2]), conversation([1, 2], "x"), conversation([1, 3])
    for one in (early, other, branch):
        parked.add("a", one)
    parked.add("a", later := conversation([1, 2, 5]))
    assert [one in parked for one in (early, other, branch, later)] == [False, True, True, True]


def test_models_do_not_see_each_others(parked):
    parked.add("a", conversation([1, 2, 3]))
    assert parked.of("a").plan([1, 2, 3, 4], "").length == 3
    assert parked.of("b").plan([1, 2, 3, 4], "").length == 0
    assert parked.of("never heard of") is None


def test_a_model_that_goes_takes_its_own_with_it(parked):
    parked.add("a", conversation([1]))
    parked.add("b", kept := conversation([2]))
    parked.forget("a")
    assert (parked.nbytes(), parked.nbytes("a")) == (10, 0)
    parked.take(kept)
    assert parked.nbytes() == 0
    parked.forget("never heard of")
