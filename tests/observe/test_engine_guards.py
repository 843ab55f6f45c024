"""Real events in an engine trip its guards: a conversation that grows, a model that comes and goes."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext

import pytest

from langchain_gemma_jax.engine.base.guards import GuardWarning
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.errors import GuardError, InputError
from tests.chat.conftest import scripted  # noqa: F401  the same fixture
from tests.engine.faults_support import greedy
from tests.engine.tiny import CONTEXT

TWO_SIZES = Ladders(chunks=(16,), capacities=(32, CONTEXT), rows=(1,), draft=0)


@pytest.mark.long
def test_a_conversation_that_the_warm_up_was_not_for_is_told_of(running_of, tiny_model):
    engine = running_of(ladders=TWO_SIZES, guards={"recompile": "raise"})
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61], greedy(2)).result()  # not yet warm: nothing was promised
    engine.warmup(served, max_context=32, progress=False)
    engine.submit(served, [60, 61, 62], greedy(5), app="short").result()
    with pytest.raises(GuardError, match="first asked for after the model was warmed up"):
        engine.submit(served, [*range(60, 110)], greedy(5), app="long").result()
    assert engine.report().trips_by_app == {"recompile": {"long": 1}}


def test_a_wait_for_the_compiler_trips_once_the_model_has_answered(running_of, tiny_model, monkeypatch):
    def fresh(programs: Programs, tally: Tally, *_: object) -> Library:
        return Library(programs, None, tally)

    monkeypatch.setattr(libraries, "library_of", fresh)
    ladders = Ladders(chunks=(16, 64), capacities=(CONTEXT,), rows=(1,), draft=0)
    engine = running_of(ladders=ladders, guards={"recompile": "raise"}, compile_wait=0)
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61], greedy(1), app="first").result()  # its own programs are no trip
    with pytest.raises(GuardError, match=r"waited .* s, more than 0, for (compiling|fetching) the program \('step', 1"):
        engine.submit(served, [60, 61], greedy(3), app="second").result()
    assert engine.submit(served, [60, 61], greedy(3), app="third").result().generated_tokens == 3
    assert engine.report().trips_by_app == {"recompile": {"second": 1}}


@pytest.mark.long
def test_a_model_that_comes_and_goes_is_told_of_to_whoever_asks_it(running_of, chat_folder):
    engine = running_of(guards={"residency": "raise"}, loads_per_minute=2)
    for number in range(4):
        served = engine.load(chat_folder)
        if number < 3:
            engine.submit(served, [60, 61], greedy(1), app="first").result()
            engine.evict(served)
            while engine.models()[0].resident:
                time.sleep(0.01)
    with pytest.raises(GuardError, match=r"was evicted and loaded again 3 times within a minute, more than 2.*pin"):
        engine.submit(served, [60, 61], greedy(1), app="second").result()
    assert engine.submit(served, [60, 61], greedy(1), app="second").result().generated_tokens == 1
    report = engine.report()
    assert report.trips_by_app == {"residency": {"second": 1}}
    assert report.by_model[served.name].evictions == report.models_evicted == 3
    assert report.by_model[served.name].loads == report.loads == 4


def test_refused_requests_are_counted(running_of, tiny_model):
    from langchain_gemma_jax.errors import BusyError

    engine = running_of(max_waiting=1)
    served = engine.serve(tiny_model)
    engine._owner.call(lambda: None)
    running = [engine.submit(served, [60, 61], greedy(100))]

    def too_many() -> None:
        while len(running) < 50:
            running.append(engine.submit(served, [60, 61], greedy(100)))

    with pytest.raises(BusyError):
        too_many()
    assert engine.report().refused == 1
    for generation in running:
        generation.cancel()


def test_a_chat_model_has_a_name_and_policies_of_its_own(scripted):  # noqa: F811
    llm, engine = scripted("Yes<turn|>", "No<turn|>", app="billing", guards={"recompile": "raise"})
    llm.invoke("Hi")
    llm.invoke("Hi", app="search", guards="off")
    assert [(asked["app"], asked["guards"]) for asked in engine.submitted] == [
        ("billing", {"recompile": "raise"}),
        ("search", "off"),
    ]
    for wrong in ({"guards": "loud"}, {"guards": {"nothing": "warn"}}, {"app": 3}):
        with pytest.raises(InputError, match=r"guards: expected|app: expected"):
            scripted("x", **wrong)


@pytest.mark.parametrize("policy", ["off", "warn"])
def test_copies_that_nobody_asked_for_are_a_sentence_of_the_report_whatever_the_guard_does(
    running_of, tiny_model, policy
):
    engine = running_of(guards=policy)
    served = engine.serve(tiny_model)
    engine.submit(served, [60, 61], greedy(1)).result()
    assert engine.report().device_placement == "no device placement mismatches detected"
    assert "no device placement mismatches detected" in str(engine.report())
    (runner,) = engine._owner.models.runners.values()
    put = runner.device.put

    def forgotten(tree: object, *, for_step: bool = False) -> object:
        runner.device.put = put  # once
        return tree

    engine._owner.call(lambda: setattr(runner.device, "put", forgotten))
    told = pytest.warns(GuardWarning, match="was handed .* of host memory") if policy == "warn" else nullcontext()
    with told:
        engine.submit(served, [70, 71], greedy(1)).result()
    found = engine.report()
    assert found.implicit_copies == 1
    assert found.implicit_bytes > 64, "sixteen tokens and three numbers"
    assert re.fullmatch(r"1 implicit copy, \d+ B in total", found.device_placement)
    assert found.to_dict()["device_placement"] == found.device_placement
