"""The gate of rounded keys and values, on a tiny model."""

from __future__ import annotations

import pytest

from benchmarks.memory.rounded_cache import Pair, chat, of_model, quality, share_of_bytes, steps
from langchain_gemma_jax.models.loading.load import load


@pytest.fixture(scope="module")
def pair():
    with load("sprout-s", progress=False) as model:
        yield of_model(model), chat(model.tokenizer.encode_scaffold, model.tokenizer.bos_id, 150)


@pytest.mark.long
def test_a_cache_is_as_near_as_it_is_exact(pair):
    """Against itself it is the same; bfloat16 and eight bits are less near, and eight bits are smaller."""
    both, ids = pair
    assert isinstance(both, Pair)
    same = quality(both, ids, (both.plain, both.plain))
    assert (same.kl, same.same, same.places) == (0.0, 1.0, len(ids))
    rounded, coarse = (quality(both, ids, recipes) for recipes in (both.recipes, both.coarse))
    assert 0 <= coarse.kl < rounded.kl < 0.05
    assert rounded.kl <= rounded.worst
    assert share_of_bytes(both, 100) < 1


@pytest.mark.long
def test_steps_of_both_kinds_run(pair):
    plain, rounded = steps(pair[0], 40, 2)
    assert plain > 0 < rounded
