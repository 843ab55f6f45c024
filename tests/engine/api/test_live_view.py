"""The engine at one moment: who runs, who waits, and how far they are."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from tests.engine.tiny import ONE_SIZE, settle, text
from tests.waiting import until


@pytest.mark.long
def test_running_and_waiting_requests_are_shown_with_their_pages(engine_of, tiny_model, rng):
    engine = engine_of(ladders=ONE_SIZE)
    served, sampling = engine.serve(tiny_model), Sampling(max_tokens=100, ignore_eos=True)
    assert engine.live().requests == ()
    prompt = text(rng, 20)
    generations = [engine.submit(served, prompt, sampling, scope="s", app="a") for _ in range(2)]
    until(lambda: any(each.first_token_s is not None for each in engine.live().requests))
    view = engine.live()
    for each in view.requests:
        assert (each.model, each.scope, each.app, each.prompt_tokens) == (served.name, "s", "a", 20)
        assert each.queued_s <= each.total_s
        assert each.running or not each.generated_tokens
    assert [each.number for each in view.requests] == sorted(each.number for each in view.requests)
    assert {model for model, _ in view.pools} == {served.name}
    assert [model.name for model in view.models] == [served.name]
    for generation in generations:
        generation.result()
    settle(engine)
    view = engine.live()
    assert (view.requests, view.done, view.failed) == ((), 2, 0)
    assert view.generated_tokens >= 200
    assert all(not any(pool.busy) and any(pool.kept) for _, pool in view.pools)


def test_looking_asks_nothing_of_the_owner_thread(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=ONE_SIZE)
    engine.serve(tiny_model)
    calls = []
    monkeypatch.setattr(type(engine._owner._work.inbox), "_put", lambda _, item: calls.append(item))
    for _ in range(3):
        engine.live()
    assert not calls, "an engine that rests would never come to rest"
