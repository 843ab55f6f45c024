"""The noise: Gumbel distributed, independent across ids, positions and seeds, finite for every hash."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.sampling import gumbel, key_at

BINS = 16
SAMPLES = 1 << 16


@pytest.fixture(scope="module")
def noise():
    """The noise of [seed, position, id], as a function."""

    def at(seed, position, token):
        return gumbel(key_at(seed, position), token)

    return jax.jit(jax.vmap(at))


def uniforms(noise, *, seeds=0, positions=0, ids=0):
    """The uniform numbers behind the noise, in 0..1 if all is well, for arguments that count up or stay."""
    seeds, positions, ids = (np.broadcast_to(part, SAMPLES) for part in (seeds, positions, ids))
    words = np.stack([np.zeros(SAMPLES), seeds], axis=1).astype(np.uint32)
    got = noise(words, positions.astype(np.int32), ids.astype(np.int32))
    return np.exp(-np.exp(-np.asarray(got, np.float64)))


def deviation(counts):
    """Chi-square of counts that should be equal, in standard deviations from its mean."""
    expected = counts.sum() / counts.size
    freedom = counts.size - 1
    return (((counts - expected) ** 2 / expected).sum() - freedom) / (2 * freedom) ** 0.5


SWEEPS = {
    "ids": {"ids": np.arange(SAMPLES)},
    "far ids": {"ids": np.arange(SAMPLES) * 4},
    "positions": {"positions": np.arange(SAMPLES), "ids": 77},
    "seeds": {"seeds": np.arange(SAMPLES), "positions": 5, "ids": 77},
    "seed, position and id together": {name: np.arange(SAMPLES) for name in ("seeds", "positions", "ids")},
}


@pytest.mark.parametrize("sweep", SWEEPS.values(), ids=SWEEPS.keys())
def test_noise_is_gumbel_distributed_and_neighbors_are_independent(noise, sweep):
    u = uniforms(noise, **sweep)
    cells = np.floor(u * BINS).astype(int)
    assert abs(deviation(np.bincount(cells, minlength=BINS))) < 4.5
    for lag in (1, 2, 32):
        pairs = cells[:-lag] * BINS + cells[lag:]
        assert abs(deviation(np.bincount(pairs, minlength=BINS**2))) < 4.5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"seeds": 1}, {"seeds": 2}),
        ({"positions": 1}, {"positions": 2}),
        ({"seeds": 1, "positions": 2}, {"seeds": 2, "positions": 1}),
    ],
)
def test_other_seeds_and_positions_give_other_noise_for_the_same_ids(noise, one, other):
    first, second = (uniforms(noise, ids=np.arange(SAMPLES), **where) for where in (one, other))
    pairs = np.floor(first * BINS).astype(int) * BINS + np.floor(second * BINS).astype(int)
    assert abs(deviation(np.bincount(pairs, minlength=BINS**2))) < 4.5


def test_both_words_of_a_seed_count(noise):
    words = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], np.uint32)
    got = noise(words, np.zeros(4, np.int32), np.zeros(4, np.int32))
    assert len(set(got.tolist())) == 4


def test_both_words_of_a_key_count():
    keys = jnp.array([[5, 1], [5, 2], [6, 1], [6, 2]], jnp.uint32)
    assert len({float(gumbel(key, jnp.int32(7))) for key in keys}) == 4


def test_the_upper_tail_is_resolved():
    """A token of probability 1e-6 can win: 24 bits of a uniform number near 1 would lose such tokens."""
    key = key_at(jnp.array([0, 3], jnp.uint32), jnp.int32(4))
    got = np.asarray(jax.jit(gumbel)(key, jnp.arange(1 << 21)), np.float64)
    for level in (7, 9, 10):
        expected = got.size * -np.expm1(-np.exp(-level))
        assert abs((got > level).sum() - expected) < 4.5 * expected**0.5
    assert len(set(got[got > 10].tolist())) == (got > 10).sum()


def unmixed(bits: int) -> int:
    """The hash, inverted."""
    bits ^= bits >> 16
    bits = bits * pow(0x846CA68B, -1, 2**32) % 2**32
    bits ^= bits >> 15 ^ bits >> 30
    bits = bits * pow(0x7FEB352D, -1, 2**32) % 2**32
    return bits ^ bits >> 16


@pytest.mark.parametrize(("bits", "least", "most"), [(0, 22, 23), (2**32 - 1, -3, -2)])
def test_the_extremes_of_the_hash_give_finite_noise(bits, least, most):
    token = np.uint32(unmixed(unmixed(bits)))
    assert least < float(gumbel(jnp.zeros(2, jnp.uint32), jnp.asarray(token))) < most
