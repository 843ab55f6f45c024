"""Work in the background: done by a few threads at once, and begun no more once that is closed."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque

import pytest

from langchain_gemma_jax.engine.executables.background import Background
from tests.waiting import LONG, until


@pytest.fixture
def log():
    return []


class Watcher:
    def __init__(self, log):
        self.log = log

    def watch_this_thread(self):
        self.log.append("begin")

    def leave_this_thread(self):
        self.log.append("end")


@pytest.fixture
def background(log):
    found = Background(2, Watcher(log))
    yield found
    assert found.close(10)


def until_idle(background):
    until(lambda: not background.busy)


def test_what_is_done_and_what_fails_reaches_whoever_asked(background):
    def fail():
        raise KeyError("by the work")

    good, bad = background.submit(lambda: 7), background.submit(fail)
    assert good.result() == 7
    with pytest.raises(KeyError, match="by the work"):
        bad.result()


def test_as_many_at_once_as_there_are_workers_and_no_more(background):
    inside, most, lock = 0, 0, threading.Lock()
    two, numbers = threading.Barrier(2), itertools.count()

    def work():
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
            number = next(numbers)
        if number < 2:
            two.wait(300)
        time.sleep(0.02)
        with lock:
            inside -= 1

    for future in [background.submit(work) for _ in range(8)]:
        future.result()
    assert most == 2


def test_threads_end_when_nothing_is_left_and_come_again(background, log):
    background.submit(lambda: None).result()
    until_idle(background)
    before = threading.active_count()
    assert background.submit(lambda: 3).result() == 3
    until_idle(background)
    until(lambda: threading.active_count() <= before and log.count("end") == 2)
    assert log == ["begin", "end"] * 2


def test_the_last_thread_leaves_the_place_tidy():
    rested, two, go = threading.Event(), threading.Barrier(2), threading.Event()
    background = Background(2, at_rest=rested.set)
    for _ in range(2):
        first = background.submit(lambda: two.wait(300))
        second = background.submit(lambda: (two.wait(300), go.wait(300)))
        first.result()
        assert not rested.is_set(), "one still works"
        go.set()
        second.result()
        assert rested.wait(300)
        until_idle(background)
        rested.clear()
        go.clear()
    assert background.close(10)


def test_rest_is_had_without_work_too():
    rested = threading.Semaphore(0)
    background = Background(2, at_rest=rested.release)
    background.rest()
    assert rested.acquire(timeout=300)
    assert background.close(10)
    background.rest()  # nothing happens any more
    assert not rested.acquire(blocking=False)


def test_closing_lets_what_runs_end_and_begins_nothing_more(background):
    go, began = threading.Event(), threading.Semaphore(0)

    def work():
        began.release()
        return go.wait(300)

    running = [background.submit(work) for _ in range(2)]
    waiting = background.submit(lambda: None)
    assert began.acquire()
    assert began.acquire()
    assert not background.close(0.01)
    assert waiting.cancelled()
    assert background.submit(lambda: None).cancelled()
    assert background.busy
    go.set()
    assert background.close(LONG)
    assert [future.result(0) for future in running] == [True, True]


def test_a_cancelled_one_is_not_begun(background):
    go, done = threading.Event(), []
    blocking = [background.submit(lambda: go.wait(300)) for _ in range(2)]
    third = background.submit(lambda: done.append(1))
    assert third.cancel()
    go.set()
    for future in blocking:
        future.result()
    until_idle(background)
    assert not done


def test_where_no_thread_can_be_started_it_is_for_whoever_asked_and_nothing_waits_for_it(background, log, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    release = threading.Event()
    running = background.submit(lambda: release.wait(300))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        behind = background.submit(lambda: 5)  # one thread is there, and does it
        release.set()
        assert running.result()
        assert behind.result() == 5
        until_idle(background)
        with pytest.raises(RuntimeError, match="new thread"):
            background.submit(lambda: 6).result()
        assert not background.busy
    assert background.submit(lambda: 7).result() == 7  # as soon as there are threads again


class Meeting(deque):
    """Tasks that another thread comes to, at a moment when it has to wait for the lock."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def meet(self):
        if (other := self.other) is not None:
            self.other = None
            other.start()
            other.join(0.2)  # which is in vain where it has to wait

    def __bool__(self):
        some = len(self) > 0
        if not some:
            self.meet()
        return some

    def append(self, task):
        self.meet()
        super().append(task)


def test_what_is_submitted_as_the_last_thread_goes_is_done():
    background, late = Background(1), []
    other = threading.Thread(target=lambda: late.append(background.submit(lambda: 7)))
    background._tasks = Meeting(None)
    background.submit(lambda: setattr(background._tasks, "other", other)).result()
    until_idle(background)
    other.join()
    assert late[0].result() == 7
    assert background.close(LONG)


def test_what_is_submitted_as_it_closes_is_done_or_cancelled():
    background = Background(1)
    other = threading.Thread(target=background.close)
    background._tasks = Meeting(other)
    future = background.submit(lambda: 7)
    other.join()
    assert future.cancelled() or future.result() == 7
    assert background.close(LONG)
