"""Rotary positions, against the definition in float64."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.model_config import Rope
from langchain_gemma_jax.models.gemma.rope import rotate, rotation

SIZE = 16
KINDS = {
    "plain": Rope(10_000.0),
    "linear": Rope(1_000_000.0, position_scale=8.0),
    "proportional": Rope(1_000_000.0, rotated_share=0.25),
    "proportional, scaled": Rope(1_000_000.0, position_scale=2.0, rotated_share=0.5),
}
kinds = pytest.mark.parametrize("rope", KINDS.values(), ids=KINDS)


def angles(rope, at):
    """For each of the SIZE / 2 pairs: how far it is turned at a position."""
    pairs = np.arange(SIZE // 2)
    speed = np.where(pairs < rope.rotated_share * SIZE // 2, rope.theta ** (-2.0 * pairs / SIZE), 0.0)
    return at / rope.position_scale * speed


def turned(x, rope, at):
    return np.asarray(rotate(jnp.asarray(x, jnp.float32), rotation(rope, SIZE, jnp.asarray(at))))


@kinds
@pytest.mark.parametrize("at", [0, 1, 7, 1000, 100_000])
def test_each_pair_turns_at_its_own_speed(rope, at):
    x = np.random.default_rng(at).normal(size=SIZE)
    pairs = (x[: SIZE // 2] + 1j * x[SIZE // 2 :]) * np.exp(1j * angles(rope, at))
    found = turned(x[None, None, None], rope, [[at]])[0, 0, 0]
    # Angles are float32: the fastest pair loses a digit for each digit of its position.
    np.testing.assert_allclose(found, [*pairs.real, *pairs.imag], atol=1e-6 + at * 2e-7)


@kinds
def test_only_the_distance_matters_to_a_score(rope):
    random = np.random.default_rng(1)
    query, key = random.normal(size=(2, 1, 1, 1, SIZE))
    scores = [
        np.sum(turned(query, rope, [[at + 9]]) * turned(key, rope, [[at]]))
        for at in (0, 5, 300)
    ]  # fmt: skip
    np.testing.assert_allclose(scores, scores[0], rtol=1e-4)


def test_every_row_and_token_has_its_own_position():
    x = np.random.default_rng(2).normal(size=(2, 3, 4, SIZE))
    at = np.array([[0, 1, 2], [40, 41, 42]])
    together = turned(x, KINDS["plain"], at)
    for row in range(2):
        for token in range(3):
            alone = turned(x[row : row + 1, token : token + 1], KINDS["plain"], at[row : row + 1, token : token + 1])
            np.testing.assert_allclose(together[row, token], alone[0, 0], rtol=1e-6)


def test_position_zero_turns_nothing():
    x = np.random.default_rng(3).normal(size=(1, 1, 2, SIZE)).astype(np.float32)
    np.testing.assert_array_equal(turned(x, KINDS["linear"], [[0]]), x)


def test_a_partial_rope_leaves_the_slow_pairs_alone():
    x = np.random.default_rng(4).normal(size=(1, 1, 1, SIZE)).astype(np.float32)
    found = turned(x, KINDS["proportional"], [[77]])[0, 0, 0]
    still = [2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15]
    np.testing.assert_array_equal(found[still], x[0, 0, 0, still])
    assert np.all(found[[0, 1, 8, 9]] != x[0, 0, 0, [0, 1, 8, 9]])
