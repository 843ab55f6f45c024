"""Picked tokens against a sampler that sorts and loops, and against the laws of chance.

What the filters keep and what the edits change have tests of their own; here they act together.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.filters import BLOCK, FEW
from langchain_gemma_jax.engine.device.knobs import OF_THE_BIASED, OF_THE_TOKEN, knobs
from langchain_gemma_jax.engine.device.sampling import (
    TOP_LOGPROBS,
    best_is_enough,
    gumbel,
    key_at,
    pick,
    the_best,
)
from langchain_gemma_jax.models.seams.score_share import EVERY_SCORE

VOCAB, VALID, SLOTS = 320, 311, 8
LARGE = 3 * FEW * BLOCK + 5  # found by blocks, and no multiple of them

traces = []


def counted(*arguments, valid_vocab, best=None):
    traces.append(arguments[0].shape)
    return pick(*arguments, valid_vocab=valid_vocab, best=best)


program = jax.jit(counted, static_argnames="valid_vocab")


def picked(scores, wishes, *, seeds=0, history=None, positions=0, allowed=None, valid_vocab=VALID, best=None):
    """Pick for the rows of ``scores``; one wish, seed and position for all, or one a row."""
    rows, vocab = scores.shape
    wishes = [wishes] * rows if isinstance(wishes, dict) else wishes
    seeds = np.broadcast_to(seeds, rows).tolist()
    made = [knobs(**{"prompt_length": 3, "seed": seed, **wish}) for seed, wish in zip(seeds, wishes, strict=True)]
    arguments = (
        scores.astype(np.float32),
        jax.tree.map(lambda *leaves: np.stack(leaves), *made),
        np.zeros((rows, SLOTS), np.int32) if history is None else history.astype(np.int32),
        np.broadcast_to(positions, rows).astype(np.int32),
        np.full((rows, -(-vocab // 32)), 2**32 - 1, np.uint32) if allowed is None else allowed,
    )
    with jax.transfer_guard("disallow"):
        got = program(*jax.device_put(arguments), valid_vocab=valid_vocab, best=jax.device_put(best))
        got = jax.device_get(got)
    assert ((got.tokens >= 0) & (got.tokens < valid_vocab)).all()
    return got


def random_scores(rows, *, vocab=VOCAB, width=2.0, seed=0):
    return (np.random.default_rng(seed).normal(size=(rows, vocab)) * width).astype(np.float32)


def expected_token(scores, *, seed, position, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, valid_vocab=VALID):
    """Sort, cut, cut, cut, and take the best of score + noise."""
    x = scores.astype(np.float64)
    x[valid_vocab:] = -np.inf
    if temperature == 0:
        return x.argmax()
    x = (x - x.max()) / temperature
    if top_k:
        x[x < np.sort(x)[::-1][top_k - 1]] = -np.inf
    if top_p < 1:
        order = np.argsort(-x, kind="stable")
        mass = np.exp(x[order]) / np.exp(x).sum()
        crossing = order[np.searchsorted(np.cumsum(mass), top_p)]
        x[x < x[crossing]] = -np.inf
    x[np.exp(x) < min_p] = -np.inf
    key = key_at(np.array([0, seed], np.uint32), np.int32(position))
    return (x + np.asarray(gumbel(key, np.arange(x.size, dtype=np.int32)))).argmax()


ROWS = 64
WISHES = [
    {},
    {"temperature": 0},
    {"temperature": 0.4},
    {"temperature": 3.0},
    {"top_k": 1},
    {"top_k": 5, "temperature": 2.0},
    {"top_k": 64, "top_p": 0.95},
    {"top_k": 200, "top_p": 0.9, "min_p": 0.05},
    {"top_p": 0.1},
    {"top_p": 0.7},
    {"top_p": 0.98},
    {"min_p": 0.3},
    {"min_p": 0.01, "temperature": 2.0},
]


@pytest.mark.long
@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("width", [0.3, 4.0], ids=["flat", "model-like"])
def test_tokens_are_those_of_the_slow_sampler(wish, width):
    scores = random_scores(ROWS, width=width)
    seeds, positions = np.arange(ROWS) * 3, np.arange(ROWS) * 7 % 50
    got = picked(scores, wish, seeds=seeds, positions=positions)
    expected = [
        expected_token(row, seed=seed, position=position, **wish)
        for row, seed, position in zip(scores, seeds, positions, strict=True)
    ]
    assert got.tokens.tolist() == expected


@pytest.mark.long
@pytest.mark.parametrize("wish", [{"top_k": 64, "top_p": 0.95}, {"top_p": 0.9}, {"top_k": 500}, {}], ids=str)
def test_a_large_vocabulary_is_searched_by_blocks(wish):
    scores = random_scores(8, vocab=LARGE)
    got = picked(scores, wish, seeds=np.arange(8), positions=4, valid_vocab=LARGE)
    expected = [expected_token(row, seed=at, position=4, valid_vocab=LARGE, **wish) for at, row in enumerate(scores)]
    assert got.tokens.tolist() == expected


@pytest.mark.long
def test_the_best_is_the_lowest_among_equals_and_a_token():
    scores = np.zeros((ROWS, VOCAB))
    scores[:, VALID:] = 9
    scores[0, [200, 7, 300]] = 5
    got = picked(scores, {"temperature": 0})
    assert got.tokens.tolist() == [7] + [0] * (ROWS - 1)


@pytest.mark.long
def test_a_best_that_was_found_before_changes_nothing():
    """Whatever a row asks for, and whatever its scores are."""
    wishes = [{"temperature": 0}, {"repetition": 1.3}, {"logit_bias": {4: 30.0}}, {"masked": True}, {"top_k": 5}]
    wishes = [{"temperature": 0, **wish} for wish in wishes[:4]] + wishes[1:]
    scores = np.tile(random_scores(8, seed=3), (len(wishes), 1))
    scores[2::8, 7] = np.nan
    scores[3::8, 9] = np.inf
    scores[4::8] = -np.inf
    scores[5::8] = 1.0
    scores[6::8, VALID:] = 99.0
    wishes = [wish for wish in wishes for _ in range(8)]
    history = np.random.default_rng(4).integers(0, VALID, (len(scores), SLOTS))
    allowed = np.random.default_rng(5).integers(0, 2**32, (len(scores), -(-VOCAB // 32)), np.uint32)
    given = {"seeds": np.arange(len(scores)), "history": history, "positions": 6, "allowed": allowed}
    broken = np.isnan(scores).any(1)
    best = scores[:, :VALID].max(1), scores[:, :VALID].argmax(1).astype(np.int32)
    best = np.where(broken, np.float32(np.nan), best[0]), np.where(broken, np.int32(0), best[1])
    plain, found = picked(scores, wishes, **given), picked(scores, wishes, best=best, **given)
    np.testing.assert_array_equal(found.tokens, plain.tokens)
    wrong = best[0], np.full_like(best[1], 17)  # which greedy rows take as it is, where it is legal, and no others
    found = picked(scores, wishes, best=wrong, **given).tokens
    greedy = [
        row for row, wish in enumerate(wishes) if "temperature" in wish and set(wish) <= {"temperature", "masked"}
    ]
    greedy = [row for row in greedy if np.isfinite(best[0][row])]
    legal = [row for row in greedy if "masked" not in wishes[row] or allowed[row, 0] >> 17 & 1]
    assert [row for row in range(len(scores)) if found[row] != plain.tokens[row]] == legal
    assert set(found[legal].tolist()) == {17}
    assert 6 <= len(legal) < len(greedy)


def test_ties_with_the_kth_are_all_in_the_race():
    got = picked(np.zeros((ROWS, VOCAB)), {"top_k": 2}, positions=np.arange(ROWS))
    assert len(set(got.tokens.tolist())) > ROWS / 2


@pytest.mark.parametrize("temperature", [1e-45, 1e-30, 1e-6])
def test_a_tiny_temperature_takes_the_best(temperature):
    scores = random_scores(ROWS)
    scores[:, VALID:] = -9
    got = picked(scores, {"temperature": temperature}, seeds=np.arange(ROWS))
    assert got.tokens.tolist() == scores.argmax(axis=1).tolist()


# The draw is a function of seed, position and the row's scores.


@pytest.mark.long
def test_a_row_draws_the_same_alone_and_among_others():
    scores = random_scores(8, width=0.5)
    wishes = [*WISHES[2:9], {"repetition": 2.0, "frequency": 0.5, "logit_bias": {3: 2.0}, "logprobs": True}]
    seeds, positions = np.arange(8) * 11, np.arange(8)
    history = np.random.default_rng(1).integers(0, 20, (8, SLOTS))
    together = picked(scores, wishes, seeds=seeds, positions=positions, history=history)
    for row in range(8):
        at = slice(row, row + 1)
        alone = picked(scores[at], wishes[at], seeds=seeds[at], positions=positions[at], history=history[at])
        assert alone.tokens[0] == together.tokens[row]
        np.testing.assert_array_equal(alone.top_ids[0], together.top_ids[row])
        np.testing.assert_allclose(alone.top_logprobs[0], together.top_logprobs[row], rtol=1e-6)


def test_the_way_to_a_draw_does_not_show():
    """A hundred tokens far above the rest: the best few tell, or the whole vocabulary is searched."""
    scores = random_scores(ROWS, width=0.5)
    scores[:, 50:150] += 40
    positions = np.arange(ROWS)
    ways = [{"top_k": 100}, {"top_k": 250, "min_p": 1e-9}, {"min_p": 1e-9}, {}]
    tokens = [picked(scores, wish, positions=positions).tokens.tolist() for wish in ways]
    assert tokens == [tokens[0]] * len(ways)
    assert len(set(tokens[0])) > 20


def test_banning_what_was_not_drawn_changes_nothing():
    scores = random_scores(ROWS, width=0.5)
    positions = np.arange(ROWS)
    before = picked(scores, {}, positions=positions).tokens
    losers = (before[:, None] + 1 + np.arange(150)[None, :]) % VALID
    wishes = [{"logit_bias": dict.fromkeys(row.tolist(), -100.0)} for row in losers]
    np.testing.assert_array_equal(picked(scores, wishes, positions=positions).tokens, before)


def test_seed_and_position_both_change_the_draw():
    scores = np.repeat(random_scores(1, width=0.5), ROWS, axis=0)
    for change in ({"seeds": np.arange(ROWS)}, {"positions": np.arange(ROWS)}):
        assert len(set(picked(scores, {}, **change).tokens.tolist())) > ROWS / 2
    assert len(set(picked(scores, {}).tokens.tolist())) == 1


@pytest.mark.long
def test_draws_follow_the_distribution():
    batches = 200
    row = np.array([2.0, 1.0, 0.0, -1.0, -2.0, 1.5, 0.5, -0.5])
    scores = np.full((ROWS, VOCAB), -np.inf)
    scores[:, 40 : 40 + row.size] = row
    wish = {"temperature": 1.5}
    tokens = [picked(scores, wish, positions=at * ROWS + np.arange(ROWS)).tokens - 40 for at in range(batches)]
    probabilities = np.exp(row / 1.5) / np.exp(row / 1.5).sum()
    expected = batches * ROWS * probabilities
    chi_square = ((np.bincount(np.concatenate(tokens), minlength=row.size) - expected) ** 2 / expected).sum()
    assert chi_square < 24.3  # 7 degrees of freedom: one in a thousand is above


# Edits, logprobs, and scores that are no numbers.


def test_edits_decide_what_is_drawn():
    scores = random_scores(ROWS)
    history = np.tile(np.arange(SLOTS), (ROWS, 1))
    wish = {"presence": 1e4, "logit_bias": dict.fromkeys(range(SLOTS, 300), -100.0)}
    got = picked(scores, wish, history=history, positions=6)  # prompt 0..2, generated 3..5
    expected = scores[:, :VALID].copy()
    expected[:, 3:6] = expected[:, SLOTS:300] = -np.inf
    tokens = [expected_token(row, seed=0, position=6) for row in expected]
    assert got.tokens.tolist() == tokens

    allowed = np.zeros((ROWS, VOCAB // 32), np.uint32)
    allowed[:, 5] = 0b1101
    masked = picked(scores, {"masked": True, "temperature": 5.0, "top_k": 64}, allowed=allowed, seeds=np.arange(ROWS))
    assert set(masked.tokens.tolist()) == {160, 162, 163}


@pytest.mark.parametrize("wish", [{"temperature": 0}, {}, {"top_k": 5, "top_p": 0.9}, {"repetition": 1.3}], ids=str)
def test_a_draw_that_is_legal_is_the_draw_with_the_mask(wish):
    scores, positions = random_scores(ROWS), np.arange(ROWS) % 7
    free = picked(scores, wish, seeds=np.arange(ROWS), positions=positions).tokens
    allowed = np.random.default_rng(1).integers(0, 2**32, (ROWS, VOCAB // 32), np.uint32)
    held = picked(scores, wish | {"masked": True}, seeds=np.arange(ROWS), positions=positions, allowed=allowed).tokens
    legal = (allowed[np.arange(ROWS), free // 32] >> (free % 32)) & 1 == 1
    assert 0 < legal.sum() < ROWS
    assert (held[legal] == free[legal]).all()
    assert ((allowed[np.arange(ROWS), held // 32] >> (held % 32)) & 1 == 1).all()


def test_logprobs_are_those_of_the_raw_scores():
    scores = random_scores(ROWS)
    wishes = [{"logprobs": True, "temperature": 0.2, "logit_bias": {5: 50.0}, "top_k": 3}] * ROWS
    wishes[1] = {}
    got = picked(scores, wishes)
    raw = scores - np.log(np.exp(scores.astype(np.float64)).sum(axis=1, keepdims=True))
    best = np.argsort(-raw[:, :VALID], axis=1, kind="stable")[:, :TOP_LOGPROBS]
    asked = np.arange(ROWS) != 1
    assert (got.tokens[asked] == 5).all()
    np.testing.assert_allclose(got.logprobs[asked], raw[asked, 5], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(got.top_ids[asked], best[asked])
    np.testing.assert_allclose(
        got.top_logprobs, np.take_along_axis(raw, best, 1) * asked[:, None], rtol=1e-5, atol=1e-6
    )
    assert got.logprobs[1] == 0
    assert not got.top_ids[1].any()


def test_logprobs_of_the_token_alone_and_of_those_that_have_a_bias():
    scores = random_scores(ROWS)
    raw = scores - np.log(np.exp(scores.astype(np.float64)).sum(axis=1, keepdims=True))
    asked = {"temperature": 0, "logit_bias": {7: 0.0, 3: 0.0}}
    got = picked(scores, [{**asked, "logprobs": OF_THE_TOKEN}, *[{**asked, "logprobs": OF_THE_BIASED}] * (ROWS - 1)])
    np.testing.assert_allclose(got.logprobs, raw[:, :VALID].max(1), rtol=1e-5, atol=1e-6)
    assert not got.top_logprobs[0].any()
    assert got.top_ids[1:, :2].tolist() == [[7, 3]] * (ROWS - 1)
    np.testing.assert_allclose(got.top_logprobs[1:, :2], raw[1:, [7, 3]], rtol=1e-5, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize(("vocab", "valid"), [(VOCAB, VALID), (LARGE, LARGE)])
def test_logprobs_of_equal_tokens_come_with_the_lowest_id_first(vocab, valid):
    scores = np.zeros((8, vocab))
    scores[:, [200, 100]] = 1
    got = picked(scores, {"logprobs": True, "temperature": 0}, valid_vocab=valid)
    assert got.tokens.tolist() == [100] * 8
    assert got.top_ids[:, :2].tolist() == [[100, 200]] * 8


@pytest.mark.long
def test_a_vocabulary_with_fewer_tokens_than_logprobs():
    got = picked(np.log([[0.5, 0.25, 0.125, 0.125]]), {"logprobs": True, "temperature": 0}, valid_vocab=3)
    np.testing.assert_allclose(np.exp(got.top_logprobs[0, :3]), [0.5, 0.25, 0.125], rtol=1e-6)
    assert got.top_ids[0, :3].tolist() == [0, 1, 2]
    assert (got.top_logprobs[0, 3:] == -np.inf).all()
    assert (got.top_ids < 3).all()


@pytest.mark.parametrize("wish", [{"temperature": 0}, {}, {"top_k": 64, "top_p": 0.95}, {"top_p": 0.9}], ids=str)
def test_whatever_the_scores_are_a_token_comes_back(wish):
    scores = random_scores(8)
    scores[0] = np.nan
    scores[1, ::2] = np.nan
    scores[2] = -np.inf
    scores[3] = np.inf
    scores[4, [3, 5]] = np.inf
    scores[5] = np.finfo(np.float32).max
    scores[6, 1:] = -np.inf
    scores[7] = np.finfo(np.float32).min
    got = picked(scores, {**wish, "logprobs": True}, seeds=np.arange(8))  # which checks that they are in range
    assert got.tokens[1] % 2 == 1
    assert got.tokens[4] in {3, 5}
    assert got.tokens[6] == 0
    assert ((got.top_ids >= 0) & (got.top_ids < VALID)).all()


@pytest.mark.long
@pytest.mark.parametrize("size", [320, 40_000])  # XLA takes another way to the largest of many on CPUs
def test_one_score_that_is_no_number_is_seen_and_never_picked(size):
    scores = random_scores(4, vocab=size)
    scores[0, size // 2], scores[1] = np.nan, np.nan
    scores[2, 3] = np.inf
    found = jax.device_get(jax.jit(lambda rows: EVERY_SCORE.max(rows, axis=-1))(scores))
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [np.inf, scores[3].max()]
    broken, whole = scores[:1], np.where(np.isnan(scores[:1]), -np.inf, scores[:1])
    for seed in range(8):
        one, other = (picked(rows, {"top_p": 0.5}, seeds=seed, valid_vocab=size) for rows in (broken, whole))
        assert one.tokens == other.tokens, seed


def test_no_wish_recompiles():
    scores = random_scores(8)
    picked(scores, {})
    before = len(traces)
    for wish in (*WISHES, {"repetition": 2.0, "logit_bias": {1: 1.0}}, {"logprobs": True}, {"masked": True}):
        picked(scores, wish, seeds=np.random.default_rng(0).integers(0, 2**60, 8), positions=np.arange(8))
    assert len(traces) == before


def test_the_best_of_each_row_is_enough_for_greedy_rows_alone():
    """And then it is what picking finds. Rows that are not real never count."""
    numbers = np.random.default_rng(3)
    enough = jax.jit(best_is_enough)
    others = [
        {"temperature": 0.5},
        {"repetition": 1.1},
        {"presence": 0.5},
        {"frequency": 0.5},
        {"logprobs": OF_THE_TOKEN},
    ]
    others += [{"logit_bias": {5: 1.0}}]
    for seed in range(30):
        scores = random_scores(4, seed=seed)
        best = scores[:, :VALID].max(-1), scores[:, :VALID].argmax(-1).astype(np.int32)
        allowed = np.full((4, -(-VOCAB // 32)), 2**32 - 1, np.uint32)
        wishes = [{"temperature": 0, "masked": bool(numbers.integers(2))} for _ in range(4)]

        def asked(wishes, best, allowed, real=4):
            made = [knobs(**{"prompt_length": 3, "seed": 0, **wish}) for wish in wishes]
            return bool(enough(jax.tree.map(lambda *leaves: np.stack(leaves), *made), best, allowed, np.int32(real)))

        assert asked(wishes, best, allowed)
        usual, quick = picked(scores, wishes, allowed=allowed), the_best(best)
        for one, other in zip(jax.tree.leaves(usual), jax.tree.leaves(quick), strict=True):
            np.testing.assert_array_equal(one, other)
        row = int(numbers.integers(4))
        for wish in others:
            assert not asked([*wishes[:row], wishes[row] | wish, *wishes[row + 1 :]], best, allowed), wish
        broken = best[0].copy()
        broken[row] = np.nan
        assert not asked(wishes, (broken, best[1]), allowed)
        illegal = allowed.copy()
        illegal[row, best[1][row] // 32] = 0
        assert asked(wishes, best, illegal) != wishes[row]["masked"]
        assert asked(wishes, (broken, best[1]), allowed, real=row) == (
            row == 0 or asked(wishes, best, allowed, real=row)
        )
