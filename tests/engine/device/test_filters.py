"""The best few tokens, and the floors, against sorting everything."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.filters import BLOCK, FEW, LANE, TOP, best_few, floor_among_few, floor_of_all
from langchain_gemma_jax.engine.device.knobs import knobs

TILE = BLOCK * LANE
SIZES = [3, FEW, 320, 512, 2 * FEW * BLOCK, 2 * FEW * BLOCK + 1, 3 * TILE, 5 * TILE - 7]

few_of = jax.jit(best_few)
floor_all = jax.jit(floor_of_all)
floor_few = jax.jit(floor_among_few)


def scores_of(size: int, kind: str) -> np.ndarray:
    random = np.random.default_rng(size)
    row = random.normal(size=size).astype(np.float32)
    if kind == "best in one block":
        row[np.arange(5, size, LANE)[:FEW]] += 9
    elif kind == "best side by side":
        row[size // 2 :][:FEW] += 9
    elif kind == "many ties":
        row = np.round(row)
    elif kind == "mostly banned":
        row[random.permutation(size)[FEW // 2 :]] = -np.inf
    return row


@pytest.mark.parametrize("size", SIZES)
def test_the_best_few_are_the_best(size):
    for kind in ("plain", "best in one block", "best side by side", "many ties", "mostly banned"):
        row = scores_of(size, kind)
        values, ids = (np.asarray(part) for part in few_of(row))
        np.testing.assert_array_equal(values, np.sort(row)[::-1][:FEW], err_msg=kind)
        real = values > -np.inf
        np.testing.assert_array_equal(row[ids[real]], values[real], err_msg=kind)
        assert len(set(ids[real].tolist())) == real.sum(), kind


def kept(x: np.ndarray, *, top_k: int = 0, top_p: float = 1, min_p: float = 0) -> np.ndarray:
    """Which tokens the filters keep, by sorting."""
    x = x.astype(np.float64)
    keep = np.isfinite(x)
    if top_k:
        keep &= x >= np.sort(x)[::-1][min(top_k, x.size) - 1]
    mass = np.where(keep, np.exp(x), 0)
    if top_p < 1:
        descending = np.sort(mass)[::-1]
        reached = np.searchsorted(np.cumsum(descending), top_p * mass.sum())
        keep &= mass >= descending[min(reached, x.size - 1)]
    return keep & (mass >= min_p)


WISHES = [
    *({"top_k": k} for k in (1, 2, 64, TOP, TOP + 1, 1000, 10**6)),
    *({"top_p": p} for p in (0.001, 0.3, 0.9, 0.99, 0.9999)),
    *({"min_p": p} for p in (0.9, 0.1, 1e-3, 1e-6)),
    {"top_k": 64, "top_p": 0.95},
    {"top_k": 64, "top_p": 0.95, "min_p": 0.05},
    {"top_k": 700, "top_p": 0.8, "min_p": 0.001},
    {"top_p": 0.9, "min_p": 0.2},
    {},
]
WIDTHS = {"flat": 0.5, "model-like": 3.0, "sharp": 40.0}


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_floors_keep_what_sorting_keeps(wish, width):
    for rounded in (False, True):  # with ties by the dozen, too
        x = np.random.default_rng(7).normal(size=2000) * width
        x = (np.round(x) if rounded else x).astype(np.float32)
        x -= x.max()
        x[::7] = -np.inf
        wanted = knobs(seed=0, prompt_length=0, **wish)
        expected = kept(x, **wish)
        possible = np.isfinite(x)
        np.testing.assert_array_equal((x >= np.asarray(floor_all(x, wanted))) & possible, expected)

        few = np.sort(x)[::-1][:FEW]
        floor, enough = floor_few(few, wanted, np.exp(x).sum(dtype=np.float32))
        if enough:
            np.testing.assert_array_equal((x >= np.asarray(floor)) & possible, expected)
        else:
            assert wish.get("top_k", 0) > TOP or expected.sum() >= FEW


@pytest.mark.parametrize("wish", [{"top_k": 1}, {"top_k": TOP}, {"top_p": 0.5}, {"min_p": 0.01}], ids=str)
def test_the_few_are_enough_for_what_requests_ask_for(wish):
    x = -np.sort(np.random.default_rng(1).exponential(3, size=FEW)).astype(np.float32)
    x -= x[0]
    x[-1] -= 20
    _, enough = floor_few(x, knobs(seed=0, prompt_length=0, **wish), np.exp(x).sum())
    assert enough


def test_the_few_know_when_another_token_ties_with_the_last_one():
    x = np.zeros(FEW, np.float32)
    assert not floor_few(x, knobs(seed=0, prompt_length=0, top_k=64), np.float32(FEW))[1]
    x[20:] = -np.inf  # of the few that a grammar allows, none is missing
    assert floor_few(x, knobs(seed=0, prompt_length=0, top_k=64), np.float32(20))[1]


def test_bisection_reaches_any_float():
    """Floors from 0 down to the lowest float, and ones that no weight reaches."""
    x = -np.geomspace(1e-30, 3e38, 400).astype(np.float32)
    x[0] = 0
    for k in (1, 2, 200, 399, 400):
        floor = float(floor_all(jnp.asarray(x), knobs(seed=0, prompt_length=0, top_k=k)))
        assert floor == x[k - 1]
    assert floor_all(x, knobs(seed=0, prompt_length=0, top_k=401)) == -np.inf
