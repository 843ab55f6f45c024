"""How long a call may take, and what its error says that the time went into."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import ExitStack

import pytest

from langchain_gemma_jax.engine.requests import clock as module
from langchain_gemma_jax.engine.requests.clock import Clock, ForRoom, Parts, await_for, wait_for
from langchain_gemma_jax.errors import DeadlineError, InputError
from tests.waiting import LONG


@pytest.fixture
def now(monkeypatch):
    """The time, which goes on when it is told to."""
    time_ = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: time_[0])
    return time_


def test_time_runs_from_when_the_clock_is_made_or_from_when_it_is_told(now):
    clock, earlier = Clock(5.0), Clock(5.0, began=98.0)
    now[0] += 2
    assert (clock.left, earlier.left) == (3.0, 1.0)
    now[0] += 9
    assert (clock.left, earlier.left) == (0.0, 0.0)
    assert Clock().left is None


def test_seconds_for_room_limit_nothing_else(now):
    clock = Clock(ForRoom(2.0))
    assert (clock.only_room, clock.left, clock.until) == (True, None, None)
    assert not Clock(2.0).only_room


@pytest.mark.parametrize("timeout", [-1, float("nan"), 2**31, "soon", True, ForRoom(-1)])
def test_what_is_no_time_is_refused(timeout):
    with pytest.raises(InputError, match="timeout: expected seconds from 0"):
        Clock(timeout)


def test_the_error_says_what_the_time_went_into_and_what_to_do(now):
    clock = Clock(10.0)
    clock.parts.now("waiting for its turn")
    now[0] += 1.5
    inside = Parts()
    clock.parts.now("loading the model", inside)
    assert clock.parts.last == "loading the model"
    inside.now("downloading")
    now[0] += 6
    inside.now("reading")
    now[0] += 0.01  # too little to tell, but the last
    clock.now("waiting for its turn")
    now[0] += 2.5
    assert str(clock.error()) == (
        "The time was up after 10.0 s: 4.0 s waiting for its turn, 6.0 s loading the model (6.0 s downloading, "
        f"2.5 s reading). {module.ADVICE}"
    )
    clock.now("waiting for room", advice=lambda: "Ask later.")
    assert str(clock.error()).endswith(". Ask later.")
    assert str(clock.error("No more.")).endswith(". No more.")


def test_what_was_over_before_the_call_is_not_told(now):
    parts = Parts()
    assert (parts.last, parts.text(0, 1)) == ("", "")
    parts.now("downloading for somebody else")
    now[0] += 30
    parts.now("reading")
    now[0] += 2
    assert parts.text(now[0] - 1, now[0]) == "1.0 s reading"


def both(steps, clock):
    """Do this work in a thread and in an event loop: the same comes of it."""
    found = []
    for do in (lambda: wait_for(steps(), clock()), lambda: asyncio.run(await_for(steps(), clock()))):
        try:
            found.append(do())
        except DeadlineError as error:
            found.append(type(error))
    assert found[0] == found[1]
    return found[0]


def done(value):
    future = Future()
    future.set_result(value)
    return future


def test_work_is_done_step_by_step_in_a_thread_and_in_a_loop():
    def steps():
        first = done(3)
        yield first
        second = done(first.result() + 1)
        yield second
        return second.result()

    assert both(steps, lambda: Clock(LONG)) == 4


def test_work_learns_that_nobody_waits_any_more():
    closed = []

    def steps():
        try:
            yield Future()
        finally:
            closed.append(True)

    assert both(steps, lambda: Clock(0.02)) is DeadlineError
    assert closed == [True, True]


async def test_a_task_that_is_cancelled_ends_the_work():
    begun, closed = asyncio.Event(), []

    def steps():
        try:
            begun.set()
            yield Future()
        finally:
            closed.append(True)

    task = asyncio.create_task(await_for(steps(), Clock()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == [True]


def test_work_that_ends_when_the_loop_that_waited_is_closed_complains_to_nobody(caplog):
    future = Future()

    def steps():
        yield future

    with pytest.raises(DeadlineError):
        asyncio.run(await_for(steps(), Clock(0.01)))
    future.set_result(3)
    assert caplog.records == []


def test_the_parts_of_a_time():
    parts, inside = Parts(), Parts()
    assert parts.text(0.0, 1.0) == ""
    inside._began = [(5.0, "fetching", None), (11.0, "reading", None)]
    parts._began = [
        (10.0, "getting ready", None),
        (10.02, "loading", inside),
        (12.0, "encoding", None),
        (12.5, "loading", inside),
    ]
    assert parts.text(10.0, 13.0) == "2.5 s loading (1.0 s fetching, 2.0 s reading), 0.5 s encoding"
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(DeadlineError, match=r"^The time was up after 0\.\d s\. "))
        wait_for(_never(), Clock(0.0))


def _never():
    from concurrent.futures import Future

    yield Future()
