"""After a warm-up nothing is compiled any more."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.buckets import Ladders
from langchain_gemma_jax.engine.warmup import warm
from tests.engine.faults_support import Holdings, assert_holds, assert_works, greedy, in_threads
from tests.engine.tiny import CONTEXT, settle, text

pytestmark = pytest.mark.timeout(120)

LADDERS = Ladders(chunks=(16,), capacities=(32, CONTEXT), rows=(1, 4), draft=0)


def test_a_warm_engine_never_compiles(engine_of, tiny_model, rng):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    settle(engine)
    before = Holdings.now()
    engine.warmup(served)
    settle(engine)
    assert_holds(before)
    warmed = engine.report()
    assert warmed.programs == warmed.program_bound == LADDERS.programs(window=8).total
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
    (runner,) = engine._models.values()
    assert {key[-1] for key in runner.device.seen if key[0] != "pick"} <= {24, 32}
    assert ("step", 4, 32) in runner.device.seen


def test_requests_get_their_turn_during_a_warm_up(engine_of, tiny_model):
    engine = engine_of(ladders=LADDERS)
    served = engine.serve(tiny_model)
    (runner,) = engine._models.values()
    parts = list(warm(runner, CONTEXT))
    assert len(parts) == LADDERS.programs(window=8).total
    generation = engine.submit(served, [10, 11], greedy(5))
    for part in parts:
        engine._owner.call(part)
    assert len(generation.result().ids) == 5


def test_verification_is_warmed_where_it_is_used(engine_of, tiny_model):
    ladders = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,), draft=3)
    for drafts in (False, True):
        engine = engine_of(ladders=ladders, drafts=drafts)
        engine.serve(tiny_model)
        (runner,) = engine._models.values()
        keys = [part.args[1][0] for part in warm(runner, CONTEXT)]
        assert ("verify" in keys) == drafts
