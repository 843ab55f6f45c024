"""The forward pass of a model of transformers, traced: its scores are torch's."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.seams import kv_cache
from tests.torchax.torch_models import needs_torch, scores, text

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_scores_are_torchs_for_rows_of_different_lengths(both):
    model, module = both
    kind, recipe = model.architecture, model.recipe
    rng = random.Random(1)
    rows, lengths = [text(rng, 60), text(rng, 60)], [32, 19]
    want = [scores(module, row) for row in rows]

    @jax.jit
    def step(params, tokens, start, count, cache):
        hidden, cache = kind.forward(params, recipe, tokens, start, count, cache, None)
        return kind.logits(params, recipe, hidden), cache

    cache = kv_cache.allocate(kind.cache_layout, len(rows), 128, "float32", jax.devices()[0])
    chunk = jnp.asarray([row[:32] for row in rows], jnp.int32)
    found, cache = step(model.params, chunk, jnp.zeros(2, jnp.int32), jnp.asarray(lengths, jnp.int32), cache)
    for row, length in enumerate(lengths):
        assert np.abs(np.asarray(found)[row, :length] - want[row][:length]).max() < 1e-4
    for _ in range(25):
        one = jnp.asarray([[row[length]] for row, length in zip(rows, lengths, strict=True)], jnp.int32)
        found, cache = step(model.params, one, jnp.asarray(lengths, jnp.int32), jnp.ones(2, jnp.int32), cache)
        for row, length in enumerate(lengths):
            assert np.abs(np.asarray(found)[row, 0] - want[row][length]).max() < 1e-4
        lengths = [length + 1 for length in lengths]
    assert step._cache_size() == 2, "one program for the chunk, one for a step"
