"""After a warm-up nothing is compiled any more."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.executables.warmup import first_answer, needed
from langchain_gemma_jax.errors import ClosedError
from tests.engine.faults_support import Holdings, assert_holds, assert_works, greedy, in_threads
from tests.engine.tiny import CONTEXT, settle, text

LADDERS = Ladders(chunks=(16,), capacities=(32, CONTEXT), rows=(1, 4), draft=0)
BOUND = LADDERS.for_context(CONTEXT).programs().total


def test_a_warm_engine_never_compiles(engine_of, tiny_model, rng):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    settle(engine)
    before = Holdings.now()
    engine.warmup(served)
    settle(engine)
    assert_holds(before)
    warmed = engine.report()
    assert warmed.programs == warmed.program_bound == BOUND
    assert warmed.kv_bytes == 0

    def ask(index: int) -> object:
        return engine.submit(served, text(rng, 1 + 7 * index), greedy(20, temperature=index / 10)).result()

    results = in_threads(12, ask)
    assert not [result for result in results if isinstance(result, Exception)]
    assert engine.report().compiles == warmed.compiles
    assert engine.report().programs == warmed.programs
    assert_works(engine, served)


def test_only_what_a_shorter_context_needs_is_compiled(engine_of, tiny_model):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    engine.warmup(served, max_context=20)
    (runner,) = engine._owner.models.runners.values()
    assert {key[-1] for key in runner.device.seen if key[0] in {"read", "step"}} == {32}
    assert ("step", 4, 32) in runner.device.seen


def test_requests_get_their_turn_during_a_warm_up(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    began, go_on = threading.Event(), threading.Event()
    make = type(runner.library).make

    def slow(library, key):
        if threading.current_thread().name == "gemma-jax-background":
            began.set()
            assert go_on.wait(300)
        return make(library, key)

    monkeypatch.setattr(type(runner.library), "make", slow)
    warming = threading.Thread(target=engine.warmup, args=(served,))
    warming.start()
    assert began.wait()
    assert len(engine.submit(served, [10, 11], greedy(5)).result().ids) == 5
    go_on.set()
    warming.join()


@pytest.mark.parametrize("moves_pages", [False, True])
def test_an_agent_s_first_needs_come_first(moves_pages):
    ladders = LADDERS.for_context(CONTEXT)
    keys = list(ladders.program_keys(moves_pages=moves_pages))
    order = needed(keys, ladders, CONTEXT)
    assert sorted(order, key=str) == sorted(keys, key=str)
    alone = [key for key in order if key not in {("step", 4, 32), ("step", 4, CONTEXT)}]
    assert order[: len(alone)] == alone  # several conversations at once come after one alone
    first = first_answer(ladders)
    assert {*first} <= {*order[: 4 + 3 * moves_pages]}
    assert order.index(("step", 1, 32)) < order.index(("read", 16, CONTEXT))
    short = needed(keys, ladders, 20)
    assert short == [key for key in order if key[-1] != CONTEXT]


def test_what_checks_drafts_is_what_reads_prompts():
    """So nothing more is warmed for them than the rows that tokens are picked for."""
    ladders = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1, 4), draft=9).for_context(CONTEXT)
    order = needed(ladders.program_keys(moves_pages=False), ladders, CONTEXT)
    picks = [key for key in order if key[0] == "pick"]
    assert picks == [("pick", ladders.picks), ("pick", 4)]
    assert order.index(("pick", 10)) < order.index(("step", 1, CONTEXT)) < order.index(("pick", 4))


def test_a_model_can_be_warmed_by_its_name_and_says_what_that_cost(engine_of, tiny_folder):
    engine = engine_of(ladders=Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,), draft=0))
    found = engine.warmup(tiny_folder)
    assert found.programs == engine.report().programs
    assert found.warm_start_s is None
    assert found.cold_start_s <= found.work_seconds
    assert "There is no cache on the disk" in str(found)


def test_what_fails_is_told_after_the_rest_was_made(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    make, made = type(runner.library).make, []

    def fail(library, key):
        if key == ("pick", 4):
            raise RuntimeError("no room for this one")
        made.append(key)
        return make(library, key)

    monkeypatch.setattr(type(runner.library), "make", fail)
    with pytest.raises(RuntimeError, match="no room for this one"):
        engine.warmup(served)
    assert len(made) == BOUND - 1


def test_an_engine_that_is_closed_meanwhile_says_so(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    make = type(runner.library).make

    def slow(library, key):
        engine.close(0)
        return make(library, key)

    monkeypatch.setattr(type(runner.library), "make", slow)
    with pytest.raises(ClosedError, match="closed before all programs were there"):
        engine.warmup(served)
