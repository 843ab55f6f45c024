"""The engine from outside: what may be passed, what is served, what it reports."""

from __future__ import annotations

import weakref

import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import CancelledRequestError, ClosedError, ContextLengthError, InputError
from tests.engine.faults_support import (
    LIMIT,
    SMALL,
    Holdings,
    assert_holds,
    assert_works,
    copied,
    greedy,
    idle_memory_dropped,
    in_threads,
    slowed,
)
from tests.engine.tiny import settle, text

# What may be passed.


@pytest.mark.parametrize("source", [None, 3, b"folder", ["a"], object()])
def test_a_source_is_a_path_or_an_id(small, source):
    engine, served = small
    with pytest.raises(InputError, match="expected a folder or a model's id"):
        engine.load(source)
    assert_works(engine, served)


# What is served.


def test_one_model_is_served_once_however_many_threads_ask(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL)
    found = in_threads(16, lambda _: engine.serve(tiny_model))
    assert len({id(served) for served in found}) == 1
    assert len(engine._owner.models.runners) == 1
    assert_works(engine, found[0])


def test_a_model_that_was_closed_is_not_served(engine_of, tiny_model):
    engine, mortal = engine_of(ladders=SMALL), copied(tiny_model)
    mortal.close()
    with pytest.raises(ClosedError, match="Load it again"):
        engine.serve(mortal)
    assert_works(engine, engine.serve(tiny_model))


def test_two_models_at_once(small, tiny_model, rng):
    engine, served = small
    other = engine.serve(copied(tiny_model))
    prompts = [text(rng, 10) for _ in range(6)]
    alone = [engine.submit(served, prompt, greedy(5), scope="alone").result().ids for prompt in prompts]
    generations = [engine.submit(each, prompt, greedy(5)) for prompt in prompts for each in (served, other)]
    assert [generation.result().ids for generation in generations] == [ids for ids in alone for _ in range(2)]


def test_unloading_frees_everything_without_a_collection(small, tiny_model):
    engine, served = small
    idle_memory_dropped(engine)
    before = Holdings.now()
    mortal = copied(tiny_model)
    weights = weakref.ref(mortal)
    other = engine.serve(mortal)
    assert_works(engine, other)
    assert_works(engine, served)
    kept = engine.report().kv_bytes
    engine.unload(other)
    assert 0 < engine.report().kv_bytes < kept
    with pytest.raises(InputError, match="not served"):
        engine.unload(other)
    with pytest.raises(InputError, match="not served"):
        engine.submit(other, [10])
    del mortal, other
    assert weights() is None
    idle_memory_dropped(engine)
    assert_holds(before)
    assert_works(engine, served)


def test_a_model_in_use_is_not_unloaded(small, tiny_model):
    engine, _ = small
    other = engine.serve(copied(tiny_model))
    with slowed(0.01):
        generation = engine.submit(other, [10], greedy(30))
        with pytest.raises(InputError, match="in use"):
            engine.unload(other)
        assert len(generation.result().ids) == 30
    settle(engine)
    engine.unload(other)


def test_a_request_that_meets_the_unloading_is_told_and_harms_nobody(small, tiny_model, monkeypatch):
    engine, served = small
    other = engine.serve(copied(tiny_model))
    with slowed(0.01):
        lives = engine.submit(served, [10], greedy(20))
        offer = engine._owner.offer

        def unloaded_between_its_check_and_its_offer(*arguments):
            engine.unload(other)
            return offer(*arguments)

        monkeypatch.setattr(engine._owner, "offer", unloaded_between_its_check_and_its_offer)
        late = engine.submit(other, [10], greedy(20))
        monkeypatch.undo()
        with pytest.raises(ClosedError, match="was unloaded"):
            late.result()
        assert len(lives.result().ids) == 20
    assert_works(engine, served)


def test_closing_frees_everything_and_tells_those_who_wait(engine_of, tiny_model):
    before = Holdings.now()
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    with slowed(0.01):
        generations = [engine.submit(served, [10 + index], greedy(100)) for index in range(8)]
        next(iter(pieces := iter(generations[0])))
        assert engine.close(LIMIT)
        for generation in generations[1:]:
            with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
                generation.result()
        with pytest.raises(ClosedError):
            list(pieces)
    assert engine.close()
    for call in (
        lambda: engine.submit(served, [10]),
        lambda: engine.serve(tiny_model),
        lambda: engine.warmup(served),
        lambda: engine.load("."),
    ):
        with pytest.raises(ClosedError, match=r"engine\(\) starts a new one"):
            call()
    report = engine.report()
    assert (report.requests, report.failed, report.running, report.waiting) == (8, 8, 0, 0)
    assert (report.kv_bytes, report.kv_bytes_by_scope) == (0, {})
    assert_holds(before)
    assert not tiny_model.closed
    again = engine_of(ladders=SMALL)
    assert_works(again, again.serve(tiny_model))


# What it reports.


def test_the_report_counts_what_was_done(small, rng):
    engine, served = small
    before = engine.report()
    prompt = text(rng, 20)
    first = engine.submit(served, prompt, greedy(5), scope="a").result()
    engine.submit(served, [*prompt, *first.ids, 10, 11], greedy(3), scope="a").result()
    engine.submit(served, prompt, greedy(1), scope="b").result()
    settle(engine)
    report = engine.report()
    assert report.requests - before.requests == 3
    assert report.failed == 0
    assert report.prefilled_tokens - before.prefilled_tokens == 20 + 3 + 20
    assert report.reused_tokens - before.reused_tokens == 24
    assert report.generated_tokens - before.generated_tokens == 9
    assert report.compiles == before.compiles
    assert report.dispatches > before.dispatches
    assert 0 < report.step_bytes_to_device - before.step_bytes_to_device < report.bytes_to_device
    assert (
        report.programs
        == before.programs
        == report.program_bound
        == len(engine._owner.models.runners[served].device.bound)
    )
    assert set(report.kv_bytes_by_scope) == {"a", "b"}
    held = engine._owner.models.runners[served].kv_store.held
    pages = sum(
        len({*r.whole}) * held.sizes.whole + len({*r.local.values()}) * held.sizes.local for r in held.index.residents
    )
    assert sum(report.kv_bytes_by_scope.values()) == pages == held.nbytes()
    assert pages <= report.kv_bytes <= report.kv_budget
    assert "prompt tokens" in str(report)


def test_the_settings_are_those_of_the_engine(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, kv_bytes=10**6, max_context=50)
    served = engine.serve(tiny_model)
    settle(engine)
    assert engine.report().kv_budget == 10**6
    assert served.max_context == 50
    with pytest.raises(ContextLengthError):
        engine.submit(served, range(50))


def test_reconfiguring_takes_what_it_can_and_all_or_nothing():
    engine = Engine(Settings())
    try:
        engine.reconfigure(Settings(max_waiting=3))
        assert engine.settings.max_waiting == 3
        with pytest.raises(InputError, match="kv_bytes, scope_share cannot be changed"):
            engine.reconfigure(Settings(max_waiting=4, kv_bytes=5, scope_share=0.5, guards="off"))
        assert engine.settings == Settings(max_waiting=3)
    finally:
        assert engine.close(10)


def test_each_request_that_ends_is_told_of_once_with_what_it_cost(small):
    engine, served = small
    seen = []
    enough = engine.on_finished(seen.append)
    done = engine.submit(served, [2, 10, 11, 12], greedy(5), scope="a", app="my-agent").result()
    unwanted = engine.submit(served, [2, 10, 11, 12], greedy(100), scope="b")
    unwanted.cancel()
    with pytest.raises(CancelledRequestError):
        unwanted.result()
    settle(engine)
    enough()
    engine.submit(served, [2, 10, 11, 12], greedy(5)).result()
    good, gone = seen
    assert (good.model, good.scope, good.app, good.outcome, good.failed) == (
        served.name,
        "a",
        "my-agent",
        "length",
        False,
    )
    assert (good.prompt_tokens, good.generated_tokens, good.timings) == (4, 5, done.timings)
    assert (gone.scope, gone.app, gone.outcome, gone.failed) == ("b", "", "CancelledRequestError", True)
