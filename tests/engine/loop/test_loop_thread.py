"""A thread that says itself whether it runs."""

from __future__ import annotations

import threading
import time

import pytest

from langchain_gemma_jax.engine.loop.loop_thread import LoopThread


@pytest.fixture
def running():
    """A thread that runs until it is told, and how often it was run."""
    go_on, runs = threading.Event(), []

    def run():
        runs.append(threading.get_ident())
        go_on.wait(300)

    thread = LoopThread(run, "a-loop")
    yield thread, go_on, runs
    go_on.set()


def test_it_runs_once_however_often_it_is_started(running):
    thread, go_on, runs = running
    assert (thread.begun, thread.ended, thread.wait(0)) == (False, False, False)
    callers = [threading.Thread(target=thread.start) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not thread.wait(0.01)
    go_on.set()
    assert thread.wait()
    thread.start()
    assert (thread.begun, thread.ended, len(runs)) == (True, True, 1)
    assert thread.wait(), "whoever comes later is told"
    assert thread.wait(0), "and at once"


def test_a_start_that_was_interrupted_before_it_was_known_to_run_can_be_repeated(running):
    thread, go_on, runs = running
    for _ in range(2):  # as it is where the second caller comes before the first thread has said who it is
        threading.Thread(target=thread._live, daemon=True).start()
    go_on.set()
    assert thread.wait()
    time.sleep(0.01)
    assert len(runs) == 1


def test_only_the_thread_itself_is_current():
    found = []
    thread = LoopThread(lambda: found.append(thread.is_current), "a-loop")
    assert not thread.is_current
    thread.start()
    assert thread.wait()
    assert (found, thread.is_current) == ([True], False)


def test_an_error_ends_it_and_nobody_waits_for_ever():
    def fail():
        raise ValueError("by the loop")

    thread = LoopThread(fail, "a-loop")
    waiting = threading.Thread(target=thread.wait)
    waiting.start()
    with pytest.raises(ValueError, match="by the loop"):
        thread._live()
    waiting.join()
    assert thread.wait(0)


def test_no_time_is_too_long_to_wait():
    thread = LoopThread(lambda: None, "a-loop")
    thread.start()
    assert thread.wait(threading.TIMEOUT_MAX * 10)
    assert LoopThread(lambda: None, "never begun").wait(-1) is False
