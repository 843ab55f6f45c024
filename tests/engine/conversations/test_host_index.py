"""Conversations in host memory: never more than was allowed, the oldest go first, and each model has its own."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.conversations.host_index import HostIndex
from langchain_gemma_jax.engine.conversations.prefix_index import Rings
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot

ANY = Rings(None)


def conversation(ids, nbytes=10, scope="", snapshots=()):
    return Resident(scope, 64, nbytes, object(), token_keys(ids), snapshots=list(snapshots))


@pytest.fixture
def parked():
    found = HostIndex(30)
    for model in "ab":
        found.of(model, ANY)
    return found


def test_the_oldest_make_room_whoever_they_belong_to(parked):
    first, second, third, fourth = (conversation([number]) for number in range(4))
    for model, one in (("a", first), ("b", second), ("a", third)):
        parked.add(model, one)
    assert parked.nbytes() == 30
    parked.add("b", fourth)
    assert [one in parked for one in (first, second, third, fourth)] == [False, True, True, True]
    assert (parked.nbytes(), parked.nbytes("a"), parked.nbytes("b")) == (30, 10, 20)


def test_snapshots_count(parked):
    parked.add("a", conversation([1, 2], 10, snapshots=[Snapshot(1, 1, 15, object())]))
    assert parked.nbytes() == 25


def test_what_a_later_one_goes_on_from_is_of_no_use_any_more(parked):
    early, other, branch = conversation([1, 2]), conversation([1, 2], scope="x"), conversation([1, 3])
    for one in (early, other, branch):
        parked.add("a", one)
    parked.add("a", later := conversation([1, 2, 5]))
    assert [one in parked for one in (early, other, branch, later)] == [False, True, True, True]


def test_models_do_not_see_each_others(parked):
    parked.add("a", conversation([1, 2, 3]))
    assert parked.of("a", ANY).plan([1, 2, 3, 4], "").length == 3
    assert parked.of("b", ANY).plan([1, 2, 3, 4], "").length == 0


def test_a_model_that_goes_takes_its_own_with_it(parked):
    parked.add("a", conversation([1]))
    parked.add("b", kept := conversation([2]))
    parked.forget("a")
    assert (parked.nbytes(), parked.nbytes("a")) == (10, 0)
    parked.take(kept)
    assert parked.nbytes() == 0
    parked.forget("never heard of")
