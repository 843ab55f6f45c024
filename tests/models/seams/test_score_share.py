"""The share of a device that has every score."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE, largest


@pytest.mark.parametrize("size", [5, 40_000])  # XLA takes another way to the largest of many on CPUs
def test_the_largest_is_no_number_where_one_is_none_and_infinities_are_numbers(size):
    scores = np.random.default_rng(0).normal(size=(4, size)).astype(np.float32)
    scores[0, size // 2], scores[1, :2] = np.nan, (np.inf, -np.inf)
    scores[2] = -np.inf
    found = np.asarray(largest(jnp.asarray(scores), -1))
    np.testing.assert_array_equal(found, [np.nan, np.inf, -np.inf, scores[3].max()])
    assert np.isnan(largest(jnp.asarray(scores)))


def test_all_that_is_asked_of_others_is_here():
    scores = jnp.asarray([0.5, 2.0, -1.0])
    assert EVERY_SCORE.ids(3).tolist() == EVERY_SCORE.places(jnp.arange(3), 3).tolist() == [0, 1, 2]
    assert (EVERY_SCORE.total(3), EVERY_SCORE.own(scores, 3).tolist()) == (3, scores.tolist())
    assert EVERY_SCORE.at(scores, jnp.asarray([2, 0])).tolist() == [-1.0, 0.5]
    assert (float(EVERY_SCORE.max(scores)), float(EVERY_SCORE.min(scores)), float(EVERY_SCORE.sum(scores))) == (
        2,
        -1,
        1.5,
    )
    assert EVERY_SCORE.any(scores > 1)
