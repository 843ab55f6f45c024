"""Failures of the device: all callers concerned get an error, nothing is left over, the next request works."""

from __future__ import annotations

import itertools
import threading
import warnings

import jax
import pytest

from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.executables import map_limit
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.errors import ClosedError, DeviceFailedError, DeviceMemoryError, GuardError
from tests.engine.faults_support import (
    SMALL,
    Fault,
    Holdings,
    assert_holds,
    assert_works,
    copied,
    drawn,
    greedy,
    idle_memory_dropped,
    in_threads,
    injected,
    outcome,
    resource_exhausted,
    slowed,
)
from tests.engine.tiny import CONTEXT, settle, text

EIGHT = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 8), draft=0)


class BrokenError(RuntimeError):
    """The error that the device raises in these tests."""


def test_a_step_that_raises_ends_all_in_flight_with_one_error(engine_of, tiny_model, rng):
    engine = engine_of(ladders=EIGHT)
    served = engine.serve(tiny_model)
    engine.warmup(served)
    settle(engine)
    before = Holdings.now()
    prompts = [text(rng, 20) for _ in range(9)]
    steps = itertools.count(1)

    def eleventh(_number: int, _name: str, key: tuple[object, ...]) -> bool:
        if key[0] != "step" or engine.report().running != 8:
            return False  # also once it has failed: the ninth request may begin before the fault is taken away
        return next(steps) == 11

    with injected(Fault(lambda: BrokenError("it is broken"), eleventh), ["run"]):
        generations = [engine.submit(served, prompt, greedy(60)) for prompt in prompts]
        results = in_threads(8, lambda index: outcome(generations[index]))
    errors = [result for result in results if isinstance(result, Exception)]
    assert {type(error) for error in errors} == {DeviceFailedError}
    assert len(errors) == 8
    assert len({str(error) for error in errors}) == 1
    assert "BrokenError: it is broken" in str(errors[0])
    assert len({id(error) for error in errors}) == 8, "each reader raises an object of its own"
    assert len({id(error.__cause__) for error in errors}) == 1
    assert isinstance(errors[0].__cause__, BrokenError)
    assert len(generations[8].result().ids) == 60, "who waited goes on"
    report = engine.report()
    assert (report.failed, report.running, report.waiting) == (8, 0, 0)
    assert_works(engine, served)
    idle_memory_dropped(engine)
    assert_holds(before)  # while the errors, their causes and the generations are still held
    assert generations


@pytest.mark.long
def test_a_model_that_raises_ends_no_other_models_requests(engine_of, model_of, tiny_model, rng, monkeypatch):
    engine = engine_of(ladders=SMALL)
    bad, good = engine.serve(model_of("all global")), engine.serve(tiny_model)
    prompts = [text(rng, 20) for _ in range(3)]
    wanted = [engine.submit(good, prompt, greedy(90)).result().ids for prompt in prompts]
    assert len(engine.submit(bad, prompts[0], greedy(4)).result().ids) == 4  # its programs are there
    run, beside = DeviceAccess.run, []

    def faulty(self, key, program, *args, **kwargs):
        if self.asked_by[0].model is bad and key[0] == "step":
            beside.append(good in {request.asked.model for request in engine._owner.scheduler.running})
            raise BrokenError("it is broken")
        return run(self, key, program, *args, **kwargs)

    monkeypatch.setattr(DeviceAccess, "run", faulty)
    going_on = [engine.submit(good, prompt, greedy(90)) for prompt in prompts]
    ended = [outcome(one) for one in [engine.submit(bad, prompt, greedy(40)) for prompt in prompts]]
    assert [one.result().ids for one in going_on] == wanted
    assert any(beside), "it raised while the other model's requests were in flight"
    assert {type(one) for one in ended} == {DeviceFailedError}
    assert "every request of its model in flight was ended: BrokenError: it is broken" in str(ended[0])


def test_all_memory_is_given_up_after_a_failure(small, rng):
    engine, served, before = small
    engine.submit(served, text(rng, 20), greedy(4), scope="idle").result()
    generation = None
    with injected(Fault(BrokenError, lambda _n, _m, key: key[0] == "step"), ["run"]):
        generation = engine.submit(served, text(rng, 20), greedy(4))
        with pytest.raises(DeviceFailedError):
            generation.result()
    settle(engine)
    assert engine.report().kv_bytes == 0
    assert engine.report().kv_bytes_by_scope == {}
    assert_holds(before)
    assert_works(engine, served)


def workload(engine, served, prompts):
    """Requests that share a beginning, grow a cache, go on where another ended, and run together."""
    sampling = [greedy(6), greedy(6), drawn(6, seed=5), greedy(20)]
    generations = [
        engine.submit(served, prompt, options, scope="w") for prompt, options in zip(prompts, sampling, strict=True)
    ]
    results = [outcome(generation) for generation in generations]
    if isinstance(results[0], Exception):
        return results
    more = [*prompts[0], *results[0].ids, *prompts[1][:5]]
    return [*results, outcome(engine.submit(served, more, greedy(4), scope="w"))]


@pytest.fixture
def prompts(rng):
    beginning = text(rng, 18)
    return [[*beginning, 30], [*beginning, *text(rng, 3)], text(rng, 9), text(rng, 24)]


@pytest.mark.long
@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["run", "put", "fetch"])
def test_when_memory_is_full_once_at_any_call_the_tokens_are_right(small, prompts, method, every):
    engine, served, before = small
    wanted = [result.ids for result in workload(engine, served, prompts)]
    fired = 0
    for number in range(1, 51, every):
        idle_memory_dropped(engine)
        retries, failed = engine.report().memory_retries, engine.report().failed
        fault = Fault(resource_exhausted, lambda call, _m, _k, number=number: call == number)
        with injected(fault, [method]):
            results = workload(engine, served, prompts)
        assert not any(isinstance(result, Exception) for result in results), f"call {number}: {results}"
        assert [result.ids for result in results] == wanted, f"call {number}"
        settle(engine)
        fired += fault.raised
        assert engine.report().memory_retries == retries + fault.raised, f"call {number}: one retry"
        assert engine.report().failed == failed
        if not fault.raised:
            break
        idle_memory_dropped(engine)
        assert_holds(before)
    assert fired >= {"run": 40, "put": 10, "fetch": 15}[method] // every, (
        "the workload has too few calls to mean something"
    )
    assert_works(engine, served)


@pytest.mark.parametrize("method", ["run", "put", "fetch"])
@pytest.mark.parametrize("first", [1, 2, 3, 6])
def test_when_memory_stays_full_there_is_an_error_after_one_retry(small, prompts, method, first):
    engine, served, before = small
    with injected(Fault(resource_exhausted, lambda call, _m, _k: call >= first), [method]):
        results = [outcome(engine.submit(served, prompt, greedy(12))) for prompt in prompts]
    errors = [result for result in results if isinstance(result, Exception)]
    assert errors
    assert {type(error) for error in errors} == {DeviceMemoryError}
    assert all("kv_bytes" in str(error) for error in errors)
    assert all(isinstance(error.__cause__, jax.errors.JaxRuntimeError) for error in errors)
    settle(engine)
    assert engine.report().memory_retries == 2 * len(errors), "the second time is the last"
    assert (engine.report().running, engine.report().waiting) == (0, 0)
    assert_works(engine, served)
    idle_memory_dropped(engine)
    assert_holds(before)


@pytest.mark.long
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["run", "put", "fetch"])
def test_whatever_raises_at_whichever_call_it_is_told_and_forgotten(small, prompts, method, every):
    engine, served, before = small
    wanted = [result.ids for result in workload(engine, served, prompts)]
    for number in range(1, 51, every):
        fault = Fault(BrokenError, lambda call, _m, _k, number=number: call == number)
        with injected(fault, [method]):
            results = workload(engine, served, prompts)
        errors = [result for result in results if isinstance(result, Exception)]
        assert {type(error) for error in errors} <= {DeviceFailedError}, f"call {number}: {errors}"
        assert bool(errors) == bool(fault.raised)
        idle_memory_dropped(engine)
        assert_holds(before)
        assert [result.ids for result in workload(engine, served, prompts)] == wanted, f"after call {number}"
        idle_memory_dropped(engine)


def test_an_error_in_the_engines_own_code_ends_nobodys_wait(small, monkeypatch):
    engine, served, _ = small

    def mistaken(*_: object) -> object:
        raise BrokenError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(postprocess, "accept", mistaken)
        with pytest.raises(DeviceFailedError, match="a mistake"):
            engine.submit(served, [10, 11], greedy(4)).result()
    assert_works(engine, served)


def test_when_the_thread_is_killed_everybody_is_told(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, max_waiting=30)
    served = engine.serve(tiny_model)
    settle(engine)
    all_asked = threading.Event()
    at_a_step = Fault(lambda: SystemExit(3), lambda _n, _m, key: key[0] == "step" and all_asked.wait(300))
    with injected(at_a_step, ["run"]):
        generations = [engine.submit(served, [10, index], greedy(9)) for index in range(20, 32)]
        all_asked.set()
        results = in_threads(12, lambda index: outcome(generations[index]))
    assert {type(result) for result in results} == {ClosedError}
    assert any("SystemExit" in str(result) for result in results)
    assert engine._owner.thread.wait()
    assert not engine.alive
    with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
        engine.submit(served, [10], greedy(1))
    report = engine.report()
    assert (report.requests, report.failed, report.running, report.waiting, report.kv_bytes) == (12, 12, 0, 0, 0)
    assert all(generation._request.on_device.resident is None for generation in generations)
    assert all(generation._request.on_device.knobs is None for generation in generations)
    again = engine_of(ladders=SMALL)
    assert_works(again, again.serve(tiny_model))


def test_guard_off_lets_an_unknown_program_run(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, guards="off")
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    runner.device.bound = frozenset()
    assert_works(engine, served)
    assert engine.report().guard_trips == {}


def test_guard_warn_says_which_program_is_unknown(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, guards="warn")
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    runner.device.bound = frozenset()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert_works(engine, served)
    said = [str(warning.message) for warning in caught if warning.category is GuardWarning]
    assert any("('read', 16, 32) is not on the ladders" in message for message in said)
    assert engine.report().guard_trips == {"recompile": len(said)}
    assert_works(engine, served)
    assert engine.report().guard_trips == {"recompile": len(said)}, "each program is told of once"


@pytest.mark.parametrize(
    ("mode", "missing"),
    [*(("raise", kind) for kind in ("read", "pick")), ("warn, and warnings are errors", "read")],
)
def test_guard_raise_ends_the_request_alone(engine_of, tiny_model, mode, missing):
    engine = engine_of(ladders=SMALL, guards=mode.partition(",")[0])
    served = engine.serve(tiny_model)
    settle(engine)
    before = Holdings.now()
    known = list(range(50, 100))
    wanted = engine.submit(served, known[:30], greedy(5)).result().ids
    idle_memory_dropped(engine)
    engine.submit(served, known[:20], greedy(1), scope="known").result()  # which keeps what the next can go back to
    engine.submit(served, known, greedy(30), scope="known").result()
    (runner,) = engine._owner.models.runners.values()
    bound, seen = runner.device.bound, set(runner.device.seen)
    with slowed(0.02):
        other = engine.submit(served, [10, 11, 12], greedy(25), scope="other")
        next(pieces := iter(other))
        runner.device.bound = frozenset(key for key in bound if key[0] != missing)
        runner.device.seen -= {key for key in seen if key[0] == missing}
        scope = "new"
        with pytest.raises(GuardError, match=missing):
            engine.submit(served, known[:30], greedy(5), scope=scope).result()
        runner.device.bound = bound
        assert len([*pieces]) == 24, "its neighbor goes on"
    assert engine.report().guard_trips == {"recompile": 1}
    assert engine.submit(served, known[:30], greedy(5), scope=scope).result().ids == wanted
    assert_works(engine, served)
    idle_memory_dropped(engine)
    assert_holds(before)


def test_guard_raise_in_a_step_ends_those_in_it(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, guards="raise")
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    bound = runner.device.bound
    runner.device.bound = frozenset(key for key in bound if key[0] != "step")
    generations = [engine.submit(served, [10, index], greedy(5)) for index in range(20, 24)]
    assert {type(outcome(generation)) for generation in generations} == {GuardError}
    runner.device.bound = bound
    assert_works(engine, served)


def test_a_program_that_there_is_no_room_for_ends_those_alone_who_need_it(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=Ladders(chunks=(16, 64), capacities=(CONTEXT,), rows=(1,), draft=0))
    served = engine.serve(tiny_model)
    engine.submit(served, [10, 11, 12], greedy(30)).result()
    settle(engine)
    idle_memory_dropped(engine)
    before = Holdings.now()
    with slowed(0.02):
        other = engine.submit(served, [10, 11, 12], greedy(25), scope="other")
        next(pieces := iter(other))
        monkeypatch.setattr(map_limit, "at_most", lambda: 0)
        with pytest.raises(DeviceMemoryError, match="No more programs can be loaded"):
            engine.submit(served, list(range(50, 50 + CONTEXT - 8)), greedy(5)).result()
        assert len([*pieces]) == 24, "its neighbor goes on"
    monkeypatch.undo()
    assert_works(engine, served)
    idle_memory_dropped(engine)
    assert_holds(before)


@pytest.mark.long
def test_closing_a_model_that_is_served_concerns_its_requests_alone(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL)
    served, mortal = engine.serve(tiny_model), engine.serve(copied(tiny_model))
    assert_works(engine, mortal)
    with slowed(0.02):
        lives = engine.submit(served, [10, 11], greedy(30))
        dies = [engine.submit(mortal, [10, 11 + index], greedy(100)) for index in range(5)]
        next(iter(pieces := iter(dies[0])))
        mortal.model.close()
        results = [outcome(generation) for generation in dies[1:]]
        with pytest.raises(ClosedError, match="model was closed"):
            list(pieces)
        assert {type(result) for result in results} == {ClosedError}
        assert len(lives.result().ids) == 30
    with pytest.raises(ClosedError, match="was closed"):
        engine.submit(mortal, [10], greedy(1))
    engine.unload(mortal)
    assert_works(engine, served)


def test_the_thread_that_reads_is_not_the_one_that_fails(small):
    engine, served, _ = small
    names = []

    def note(_number: int, _name: str, _key: tuple[object, ...]) -> bool:
        names.append(threading.current_thread().name)
        return False

    with injected(Fault(BrokenError, note)):
        assert_works(engine, served)
    assert set(names) == {"gemma-jax-engine"}
