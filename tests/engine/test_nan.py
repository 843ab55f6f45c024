"""A model whose weights are broken says so, instead of talking nonsense."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import DeviceFailedError


@pytest.mark.parametrize("sampling", [Sampling(max_tokens=4), Sampling(max_tokens=4, temperature=1.0, top_k=5)])
def test_scores_that_are_no_numbers_end_a_request(engine_of, tiny_model, sampling):
    norm = jax.device_put(np.full(tiny_model.config.width, np.nan, np.float32), tiny_model.device)
    broken = dataclasses.replace(tiny_model, params=tiny_model.params | {"final_norm": norm})
    engine = engine_of()
    good, bad = engine.serve(tiny_model), engine.serve(broken)
    with pytest.raises(DeviceFailedError, match="NaN"):
        engine.submit(bad, [5, 6, 7], sampling).result()
    assert len(engine.submit(good, [5, 6, 7], sampling).result().ids) > 0, "the other model is as it was"
