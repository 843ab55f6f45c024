"""A wish that loading ends: whoever works sees it, and whoever sleeps wakes."""

from __future__ import annotations

import threading
import time

import pytest

from langchain_gemma_jax.models.stopping import Stop, StoppedError


def test_work_goes_on_until_it_is_asked_to_end_and_asking_twice_is_asking():
    stop = Stop()
    stop.check()
    stop.sleep(0)
    for _ in range(2):
        stop.ask()
        with pytest.raises(StoppedError, match="Load it again"):
            stop.check()
    with pytest.raises(StoppedError):
        stop.sleep(60)


def test_who_sleeps_is_woken():
    stop = Stop()
    threading.Timer(0.05, stop.ask).start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        stop.sleep(60)
    assert time.monotonic() - began < 30


def test_what_is_to_be_done_then_is_done_once_also_where_it_was_asked_for_before():
    stop, done = Stop(), []
    stop.call(lambda: done.append("before"))
    assert done == []
    stop.ask()
    stop.ask()
    stop.call(lambda: done.append("after"))
    assert done == ["before", "after"]
