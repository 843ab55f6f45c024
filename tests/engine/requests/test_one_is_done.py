import threading
from concurrent.futures import Future

import pytest

from langchain_gemma_jax.engine.requests.clock import Clock, one_is_done, wait_for
from tests.waiting import LONG


def later(act) -> None:
    threading.Timer(0.05, act).start()


def test_whatever_ends_a_future_wakes_who_waits_for_it():
    for end in (lambda f: f.set_result(1), lambda f: f.set_exception(ValueError()), Future.cancel):
        other, future = Future(), Future()
        later(lambda end=end, future=future: end(future))
        assert one_is_done((other, future), LONG)
        assert one_is_done((other, future), 0.0), "it has ended before"
        assert not one_is_done((other,), 0.01)


def test_work_goes_on_behind_a_step_that_others_gave_up():
    def steps():
        future = Future()
        later(future.cancel)
        yield future
        return future.cancelled()

    assert wait_for(steps(), Clock(LONG))


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_time_is_up(seconds):
    assert not one_is_done((Future(),), seconds)
