"""The owner thread answers whatever it is sent, while it lives, as it ends, and afterwards."""

from __future__ import annotations

import atexit
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest

from langchain_gemma_jax.engine.base.events import Events, Finished
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import CompileCounter, Metrics
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.engine.loop import owner as owner_module
from langchain_gemma_jax.engine.loop.owner import Owner
from langchain_gemma_jax.engine.requests.prompt import Prompt
from langchain_gemma_jax.engine.requests.request import Request, RequestSpec
from langchain_gemma_jax.errors import ClosedError
from tests.engine.faults_support import LIMIT, greedy


class Letters:
    def push(self, token_id: int) -> str:
        return chr(token_id)

    def finish(self) -> str:
        return ""


class NoModels:
    """An engine around an owner thread in which no model is ever loaded."""

    def budget(self, home: object) -> int:
        raise AssertionError(f"nobody asks for {home}")

    def load_again(self, known: object) -> None:
        raise AssertionError(f"nobody asks for {known}")

    loads_run = False

    def end_loads(self, until: float | None) -> bool:
        return True


def lone_owner() -> Owner:
    """An owner thread without an engine, and what it counts."""
    metrics, events = Metrics(), Events()
    events.subscribe(Finished, metrics.finished)
    return Owner(4, metrics, events, Libraries(events), NoModels())


def request() -> Request:
    return Request(RequestSpec("nobody's", Prompt.of_tokens([1, 2]), Sampling(), 0, frozenset(), 10), Letters())


@pytest.fixture
def owner():
    made = lone_owner()
    yield made
    assert made.close(LIMIT)


def test_calls_run_in_order_on_the_one_thread(owner):
    done: list[int] = []
    for index in range(5):
        owner.call(lambda index=index: done.append(index))
    assert done == [0, 1, 2, 3, 4]
    assert owner.call(lambda: owner.thread.is_current)
    assert not owner.thread.is_current


def test_a_call_from_the_thread_itself_does_not_wait_for_itself(owner):
    assert owner.call(lambda: owner.call(lambda: 3)) == 3


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_what_a_call_raises_is_raised_where_it_was_asked_for(owner, error):
    def fail() -> None:
        raise error("by the call")

    with pytest.raises(error, match="by the call"):
        owner.call(fail)
    assert owner.call(lambda: 3) == 3


def test_a_request_for_a_model_that_is_gone_is_answered(owner):
    late = request()
    assert owner.offer(late, 5)
    assert isinstance(late.mailbox.get(LIMIT), ClosedError)
    owner.call(lambda: None)
    assert owner.queued == 0
    assert (owner._work.metrics.requests, owner._work.metrics.failed) == (1, 1)


def test_more_than_may_wait_are_not_taken(owner):
    go_on = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(owner.call, lambda: go_on.wait(300))
        sent = [request() for _ in range(5)]
        assert [owner.offer(each, 3) for each in sent] == [True] * 3 + [False] * 2
        assert owner.queued == 3
        go_on.set()
        busy.result()
    assert all(isinstance(each.mailbox.get(LIMIT), ClosedError) for each in sent[:3])
    owner.call(lambda: None)
    assert owner.queued == 0


def test_a_rest_after_work_is_taken_once(owner, monkeypatch):
    rests, scheduled = threading.Semaphore(0), []
    monkeypatch.setattr(owner_module, "REST_SECONDS", 0.001)
    owner.background.rest = rests.release
    owner.call(lambda: None)
    assert not rests.acquire(timeout=0.05)  # there was no work
    for _ in range(3):
        monkeypatch.setattr(owner.scheduler, "next", lambda: scheduled.pop() if scheduled else None)
        monkeypatch.setattr(owner._dispatching, "run", lambda work: False)
        scheduled.append(object())
        owner.call(lambda: None)
        assert rests.acquire(timeout=300)
        owner.call(lambda: None)
        assert not rests.acquire(timeout=0.05)


def test_what_is_sent_while_the_thread_ends_is_answered():
    """It has looked at its inbox for the last time, and still counts as alive."""
    owner = lone_owner()
    ending, go_on = threading.Event(), threading.Event()
    stop = owner.compiles.leave_this_thread

    def end_slowly() -> None:
        stop()
        ending.set()
        go_on.wait(300)

    owner.compiles.leave_this_thread = end_slowly
    owner.close(0)
    assert ending.wait()
    assert not owner.thread.ended
    with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
        owner.offer(request(), 5)
    with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
        owner.call(lambda: 3)
    go_on.set()
    assert owner.close(LIMIT)


def test_whoever_sends_while_it_is_closed_is_answered():
    all_taken, all_refused = 0, 0
    for _ in range(20):
        owner = lone_owner()
        barrier, sent, taken, errors = threading.Barrier(9), [request() for _ in range(80)], [], []

        def send(index: int, owner=owner, barrier=barrier, sent=sent, taken=taken, errors=errors) -> None:
            barrier.wait()
            for each in sent[index * 10 : index * 10 + 10]:
                try:
                    assert owner.offer(each, 1000)
                    taken.append(each)
                    owner.call(lambda: None)
                except ClosedError as error:
                    errors.append(error)

        threads = [threading.Thread(target=send, args=(index,)) for index in range(8)]
        for thread in threads:
            thread.start()
        barrier.wait()
        owner.close(0)
        for thread in threads:
            thread.join()
        all_taken += len(taken)
        for each in taken:
            assert isinstance(each.mailbox.get(1), ClosedError)
        assert owner.close(LIMIT)
        assert owner.queued == 0
        all_refused += len(errors)
    assert all_taken
    assert all_refused


def test_a_thread_that_dies_at_its_start_leaves_nobody_waiting(monkeypatch):
    def fail(_: object) -> None:
        raise SystemExit

    monkeypatch.setattr(CompileCounter, "watch_this_thread", fail)
    owner = lone_owner()
    with pytest.raises(ClosedError):
        owner.call(lambda: 3)
    with pytest.raises(ClosedError):
        owner.offer(request(), 5)
    assert owner.thread.wait()
    assert owner.closing


def test_closing_twice_and_from_the_thread_itself_is_harmless():
    owner = lone_owner()
    assert owner.call(owner.close) is False
    assert owner.close(LIMIT)
    assert owner.close()


def test_the_end_of_the_process_waits_a_moment_and_then_leaves(monkeypatch):
    owner = lone_owner()
    left, begun, go_on = [], threading.Event(), threading.Event()
    monkeypatch.setattr(owner_module, "EXIT_SECONDS", 0.1)
    monkeypatch.setattr(owner_module, "leave_early", lambda callers: left.append(callers) or True)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(owner.call, lambda: begun.set() or go_on.wait(300))
        begun.wait()
        with owner.loading.here():
            owner._end_with_process()
        assert left == [{threading.get_ident()}], "callers' threads that may be inside XLA too"
        monkeypatch.setattr(owner_module, "leave_early", lambda callers: bool(left.append(callers) or go_on.set()))
        owner._end_with_process()  # where a process cannot be left early, it waits for the dispatch
    assert left[1:] == [set()]
    assert owner.thread.ended


def test_who_is_in_a_hurry_while_the_process_ends_waits_for_nothing(monkeypatch):
    owner, left, begun, go_on = lone_owner(), [], threading.Event(), threading.Event()

    def interrupted(_timeout: float) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(owner_module, "leave_early", lambda callers: left.append(callers) or True)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(owner.call, lambda: begun.set() or go_on.wait(300))
        with monkeypatch.context() as patch:
            patch.setattr(owner, "close", interrupted)
            owner.thread.start()
            assert begun.wait()
            owner._end_with_process()
        assert left == [set()]
        go_on.set()
    assert owner.close(LIMIT)


def test_an_owner_that_has_ended_leaves_the_end_of_the_process_alone():
    before = atexit._ncallbacks()
    owner = lone_owner()
    assert atexit._ncallbacks() == before + 1
    assert owner.close(LIMIT)
    owners = [lone_owner() for _ in range(3)]
    assert all(each.close(LIMIT) for each in owners)
    atexit.unregister(owner._end_with_process)
    assert all(each.thread.ended for each in owners)


def test_models_run_compiled_where_jit_is_switched_off(engine_of, tiny_model):
    engine = engine_of()
    wanted = engine.submit(engine.serve(tiny_model), [60, 61, 62], greedy(6)).result().ids
    jax.config.update("jax_disable_jit", True)
    try:
        engine = engine_of(ladders=Ladders(chunks=(4, 16, 32), capacities=(32, 128), rows=(1, 8)))
        assert engine.submit(engine.serve(tiny_model), [60, 61, 62], greedy(6)).result().ids == wanted
    finally:
        jax.config.update("jax_disable_jit", False)
