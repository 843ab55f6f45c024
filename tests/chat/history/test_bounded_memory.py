"""A memory of bounded bytes: the least recently used go first, and a signal handler never waits for itself."""

from __future__ import annotations

import random
import sys
import threading

from langchain_gemma_jax.chat.history.bounded_memory import ENTRY_BYTES, BoundedMemory

ONE = ENTRY_BYTES + sys.getsizeof(b"0") + sys.getsizeof(b"0123456789")


def value(number):
    return b"%010d" % number


def key(number):
    return b"%d" % number


def test_the_least_recently_used_goes_first():
    memory = BoundedMemory(3 * ONE)
    for number in range(3):
        memory.keep(key(number), value(number))
    assert memory.get(key(0)) == value(0)  # it was used now
    memory.keep(key(3), value(3))
    assert [memory.get(key(number)) for number in range(4)] == [value(0), None, value(2), value(3)]
    memory.keep(key(2), value(7))
    assert (memory.get(key(2)), len(memory)) == (value(7), 3), "in place of the one that the key had"


def test_what_is_larger_than_all_of_it_is_not_kept_and_drives_nothing_out():
    memory = BoundedMemory(2 * ONE)
    memory.keep(b"1", value(1))
    memory.keep(b"2", bytes(2 * ONE))
    assert (memory.get(b"1"), memory.get(b"2")) == (value(1), None)
    memory.keep(b"1", bytes(2 * ONE))
    assert memory.get(b"1") == value(1)


def test_the_books_are_those_of_what_is_held():
    rng, memory = random.Random(4), BoundedMemory(20 * ONE)
    for _ in range(2000):
        memory.keep(key(rng.randrange(60)), bytes(rng.randrange(4 * ONE)))
        held = [(known, memory._values[known]) for known in memory._values]
        assert memory._held == sum(ENTRY_BYTES + sys.getsizeof(k) + sys.getsizeof(v) for k, v in held) <= 20 * ONE
    assert len(memory) > 3


def test_a_signal_handler_in_the_midst_of_it_does_without():
    memory = BoundedMemory(10 * ONE)
    memory.keep(b"1", value(1))
    with memory._lock:  # as it is where a handler comes in the midst of one of these
        assert memory.get(b"1") is None
        memory.keep(b"2", value(2))
    assert (memory.get(b"1"), memory.get(b"2")) == (value(1), None)


def test_another_thread_waits_for_its_turn():
    memory, found = BoundedMemory(10 * ONE), []
    memory.keep(b"1", value(1))
    other = threading.Thread(target=lambda: found.append(memory.get(b"1")))
    with memory._lock:
        other.start()
        other.join(0.05)
        assert found == []
    other.join()
    assert found == [value(1)]
