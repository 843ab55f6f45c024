"""A call that would wait for itself is refused, and only that one."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax.errors import ReentrantCallError
from langchain_gemma_jax.reentry import Inside, from_the_engine


def in_a_thread(work):
    """Do some work in a thread of its own, and return its result or its error."""
    given = []

    def run():
        try:
            given.append(work())
        except ReentrantCallError as error:
            given.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return given[0]


def test_a_thread_is_refused_while_it_is_inside_and_others_are_not():
    inside = Inside("it loaded a model")
    inside.refuse()
    assert not inside
    with inside.here():
        assert inside
        with pytest.raises(ReentrantCallError, match=r"interrupted while it loaded a model.*would wait for itself"):
            inside.refuse()
        with pytest.raises(ReentrantCallError), inside.here():
            raise AssertionError("it is inside already")
        assert inside, "whoever was refused did not end what it was refused for"
        assert in_a_thread(inside.refuse) is None
    inside.refuse()


def test_threads_are_inside_each_for_itself():
    inside = Inside("it waited")

    def other():
        with inside.here():
            return bool(inside)

    with inside.here():
        assert inside.threads == {threading.get_ident()}
        assert in_a_thread(other) is True
        assert inside, "the other has left, and this one has not"
    assert not inside


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_it_too(error):
    inside = Inside("it waited")
    with pytest.raises(error), inside.here():
        raise error
    assert not inside
    inside.refuse()


def test_the_engines_own_threads_are_told_what_to_do():
    assert "QueueHandler" in str(from_the_engine())
