"""A model whose weights are broken says so, instead of talking nonsense."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.programs import NO_TOKEN
from langchain_gemma_jax.errors import DeviceFailedError
from tests.engine.faults_support import assert_holds, assert_works, greedy, idle_memory_dropped, outcome, slowed
from tests.engine.tiny import settle, text


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=4), Sampling(max_tokens=4, temperature=1.0, top_k=5)])
def test_scores_that_are_no_numbers_end_a_request(engine_of, tiny_model, sampling):
    norm = jax.device_put(np.full(tiny_model.config.width, np.nan, np.float32), tiny_model.device)
    broken = dataclasses.replace(tiny_model, params=tiny_model.params | {"final_norm": norm})
    engine = engine_of()
    good, bad = engine.serve(tiny_model), engine.serve(broken)
    with pytest.raises(DeviceFailedError, match="NaN"):
        engine.submit(bad, [5, 6, 7], sampling).result()
    assert len(engine.submit(good, [5, 6, 7], sampling).result().ids) > 0, "the other model is as it was"
    assert engine.report().nan_scores == 1


def test_nan_scores_end_that_request_alone(small, rng, monkeypatch):
    engine, served, before = small
    prompts = [text(rng, 20) for _ in range(3)]
    wanted = [engine.submit(served, prompt, greedy(12), scope="before").result().ids for prompt in prompts]
    idle_memory_dropped(engine)
    fetches = []
    fetch = DeviceAccess.fetch

    def nan_in_the_second_row(self: DeviceAccess, tree: object) -> object:
        found = fetch(self, tree)
        tokens = getattr(found, "tokens", found)
        if tokens.shape == (4,):
            fetches.append(1)
            if len(fetches) == 5:
                tokens = tokens.copy()
                tokens[1] = NO_TOKEN
                return tokens
        return found

    with monkeypatch.context() as patch:
        patch.setattr(DeviceAccess, "fetch", nan_in_the_second_row)
        with slowed(0.005):
            generations = [engine.submit(served, prompt, greedy(12)) for prompt in prompts]
            results = [outcome(generation) for generation in generations]
    errors = [result for result in results if isinstance(result, Exception)]
    assert [type(error) for error in errors] == [DeviceFailedError]
    assert "NaN scores" in str(errors[0])
    good = [(result.ids, ids) for result, ids in zip(results, wanted, strict=True) if not isinstance(result, Exception)]
    assert all(found == ids for found, ids in good)
    settle(engine)
    (runner,) = engine._owner.models.runners.values()
    bad = prompts[next(index for index, result in enumerate(results) if isinstance(result, Exception))]
    assert not any(list(resident.keys[:5]) == bad[:5] for resident in runner.kv_store.index.residents), "its KV is gone"
    assert_works(engine, served)
    assert engine.submit(served, bad, greedy(12)).result().ids == wanted[prompts.index(bad)]
    idle_memory_dropped(engine)
    assert_holds(before)
