"""A line of the books: what a model takes, and what of it may go."""

from __future__ import annotations

from langchain_gemma_jax.engine.residency.ledger import GUARD_SECONDS
from tests.engine.residency.books import Kv, entry, resident


def test_what_is_reserved_is_what_was_predicted_and_then_what_is_there(pool):
    one = entry()
    pool.entries.append(one)
    assert (pool.used("gpu"), one.nbytes) == (0, 0)
    pool.reserve(one)
    assert pool.used("gpu") == one.need == 40
    pool.settle(one, Kv(2, 0), 0.0, 2.0)
    assert pool.used("gpu") == 40, "a smallest conversation is sure of its place"
    one.conversations = Kv(20, 0)
    assert pool.used("gpu") == 56
    assert pool.used("another") == 0
    one.reset()
    assert pool.used("gpu") == 0


def test_the_smallest_conversation_of_a_resident_model_is_not_counted_as_spare(pool):
    one = resident(pool, "a", 1, kv=(50, 0))
    assert one.idle_kv == 46
    one.conversations = Kv(3, 0)
    assert one.idle_kv == 0


def test_one_that_was_just_loaded_waits_for_who_asked_for_it_but_not_for_long(pool):
    one = entry()
    pool.entries.append(one)
    pool.reserve(one)
    pool.settle(one, Kv(0, 0), 50.0, 20.0)
    assert not one.evictable(50.0 + GUARD_SECONDS - 0.01)
    assert pool.next_change(50.0) == GUARD_SECONDS
    assert one.evictable(50.0 + GUARD_SECONDS)
    one.keep_alive = 0.0
    assert pool.expired(50.5) == []
    one.keep_alive, one.leaving = None, True
    assert pool.expired(50.5) == [one], "whoever asked for it knows better"
    one.leaving = False
    pool.settle(one, Kv(0, 0), 60.0, 20.0)
    pool.note_running([one], 60.1)
    pool.note_running([], 60.2)
    assert one.evictable(60.3), "it was used"
