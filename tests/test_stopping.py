"""A wish that work ends: whoever works sees it, and whoever sleeps wakes."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax import stopping
from langchain_gemma_jax.stopping import EVERY, Stop, StoppedError, check, current, end_with_process, looking


def test_work_goes_on_until_it_is_asked_to_end_and_asking_twice_is_asking():
    stop = Stop()
    stop.check()
    stop.sleep(0)
    for _ in range(2):
        stop.ask()
        with pytest.raises(StoppedError, match="Ask for it again"):
            stop.check()
    with pytest.raises(StoppedError):
        stop.sleep(60)


def test_who_sleeps_is_woken():
    stop = Stop()
    asking = threading.Timer(0.05, stop.ask)
    asking.start()
    with pytest.raises(StoppedError):
        stop.sleep(threading.TIMEOUT_MAX)
    asking.join()


def test_what_is_to_be_done_then_is_done_once_also_where_it_was_asked_for_before():
    stop, done = Stop(), []
    stop.call(lambda: done.append("before"))
    assert done == []
    stop.ask()
    stop.ask()
    stop.call(lambda: done.append("after"))
    assert done == ["before", "after"]


def test_what_runs_elsewhere_is_ended_while_it_is_waited_for_and_not_behind():
    stop, ended = Stop(), []
    with stop.then(lambda: ended.append("before")):
        pass
    with stop.then(lambda: ended.append("inside")):
        stop.ask()
    with stop.then(lambda: ended.append("late")):
        pass
    assert ended == ["inside", "late"]


def test_a_deadline_that_has_passed_stops_work_that_nobody_asked_to_end():
    for until, left in ((None, None), (time.monotonic() - 1, 0.0)):
        stop = Stop(until)
        assert stop.left == left
        assert not stop.asked.done()
    with pytest.raises(StoppedError):
        stop.check()
    with pytest.raises(StoppedError):
        stop.sleep(60)
    Stop(time.monotonic() + 1e6).check()


def test_pieces_are_given_until_the_work_is_to_end_and_few_more():
    for asked_at in (0, 1, EVERY, 3 * EVERY + 7):
        stop, given = Stop(), itertools.count()

        def work(stop=stop, given=given, asked_at=asked_at) -> None:
            for number in looking(given):
                if number + 1 == asked_at:
                    stop.ask()

        if not asked_at:
            stop.ask()
        with stop.over_this_work():
            assert current() is stop
            with pytest.raises(StoppedError):
                work()
        assert next(given) == -(-asked_at // EVERY) * EVERY + 1
    assert current() is not stop
    assert list(looking(range(1000))) == list(range(1000))


def test_each_thread_looks_at_the_stop_of_its_own_work():
    here, there = Stop(), Stop()
    there.ask()

    def work() -> Stop:
        with there.over_this_work(), pytest.raises(StoppedError):
            check()
        return current()

    with here.over_this_work(), ThreadPoolExecutor(1) as threads:
        assert threads.submit(work).result() is not here
        check()


def test_the_end_of_the_process_stops_all_work_also_what_begins_later_and_what_nobody_begun(monkeypatch):
    monkeypatch.setattr(stopping, "_works", stopping._Works())
    before = Stop()
    with before.over_this_work():
        end_with_process()
        with pytest.raises(StoppedError):
            check()
    with Stop().over_this_work(), pytest.raises(StoppedError):
        check()
    with pytest.raises(StoppedError):
        check()  # of work that was not begun as anything
