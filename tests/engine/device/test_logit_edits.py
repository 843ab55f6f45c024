"""Penalties, biases and the grammar against loops over the tokens; and what is left when nothing is."""

from __future__ import annotations

from collections import Counter

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.device.knobs import knobs
from langchain_gemma_jax.engine.device.logit_edits import legal_scores

VOCAB, VALID, SLOTS = 100, 97, 24  # not a multiple of 32
edit = jax.jit(legal_scores, static_argnums=5)

RANDOM = np.random.default_rng(3)
SCORES = RANDOM.normal(size=VOCAB).astype(np.float32) * 4
SCORES[98] = 99  # no token
HISTORY = RANDOM.integers(0, 12, SLOTS).astype(np.int32)  # many twice
ANY = np.full(-(-VOCAB // 32), 2**32 - 1, np.uint32)


def words(ids):
    made = np.zeros(-(-VOCAB // 32), np.uint32)
    for token in ids:
        made[token // 32] |= np.uint32(1 << token % 32)
    return made


def edited(scores=SCORES, *, history=HISTORY, position=SLOTS, allowed=ANY, prompt_length=10, **wishes):
    made = knobs(seed=0, prompt_length=prompt_length, **wishes)
    masked = np.bool_(made.named_ints().masked > 0)
    row, best = edit(scores, made, history, np.int32(position), allowed, VALID, masked)
    row = np.asarray(row)
    assert best == row.max()
    assert np.isfinite(best)
    assert (row[VALID:] == -np.inf).all()
    return row


def reference(*, position=SLOTS, prompt_length=10, repetition=1.0, presence=0.0, frequency=0.0, logit_bias=None):
    row = SCORES.astype(np.float64)
    for token in set(HISTORY[:position].tolist()):
        row[token] = row[token] / repetition if row[token] > 0 else row[token] * repetition
    for token, count in Counter(HISTORY[prompt_length:position].tolist()).items():
        row[token] -= presence + count * frequency
    for token, bias in (logit_bias or {}).items():
        if token < VOCAB:
            row[token] = -np.inf if bias <= -100 else row[token] + bias
    row[VALID:] = -np.inf
    return row


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"repetition": 1.7},
        {"repetition": 0.6},
        {"presence": 0.8},
        {"presence": -2.0},
        {"frequency": 0.7},
        {"repetition": 1.2, "presence": 0.4, "frequency": 0.3},
        {"logit_bias": {0: 3.5, 5: -99.9, 7: -100, 8: -1000, 96: 100, 98: 100, 99: -100}},
        {"logit_bias": {VOCAB: 50.0, 10**9: 50.0}},
        {"logit_bias": dict.fromkeys(range(90), 1.0), "repetition": 1.3, "frequency": 1.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("position", [0, 10, 17, SLOTS])
def test_scores_are_changed_as_asked(wish, position):
    np.testing.assert_allclose(edited(position=position, **wish), reference(position=position, **wish), rtol=1e-5)


def test_drafts_and_leftovers_after_the_position_do_not_count():
    wish = {"repetition": 1.5, "presence": 1.0, "frequency": 1.0}
    other = HISTORY.copy()
    other[15:] = np.arange(50, 50 + SLOTS - 15)
    np.testing.assert_array_equal(edited(position=15, **wish), edited(history=other, position=15, **wish))


def test_a_history_entry_that_is_no_token_is_passed_over():
    other = np.append(HISTORY[:-2], np.int32([VOCAB, 2**31 - 1]))
    wish = {"frequency": 1.0}
    np.testing.assert_array_equal(edited(history=other, **wish), edited(position=SLOTS - 2, **wish))


def test_the_grammar_bans_what_it_does_not_allow():
    ids = [0, 31, 32, 63, 64, 96, 98]
    row = edited(allowed=words(ids), masked=True)
    assert np.flatnonzero(np.isfinite(row)).tolist() == ids[:-1]
    np.testing.assert_array_equal(row[ids[:-1]], SCORES[ids[:-1]])


def test_a_mask_without_a_grammar_has_no_effect():
    np.testing.assert_array_equal(edited(allowed=words([3])), edited(allowed=ANY))


@pytest.mark.parametrize("also", [{}, {"repetition": 1.1}], ids=["alone", "with an edit"])
def test_nan_is_never_the_best_and_infinity_is_finite(also):
    row = SCORES.copy()
    row[4], row[5] = np.nan, np.inf
    got = edited(row, **also)
    assert got[4] == -np.inf
    assert got.argmax() == 5


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_without_any_score_all_tokens_are_equal(value):
    got = edited(np.full(VOCAB, value, np.float32))
    assert set(got[:VALID].tolist()) == {got[0]}


def test_if_biases_ban_everything_the_raw_scores_decide():
    got = edited(logit_bias=dict.fromkeys(range(VALID), -100.0))
    np.testing.assert_array_equal(got[:VALID], SCORES[:VALID])


def test_a_bias_gives_way_to_the_grammar():
    got = edited(logit_bias={3: -100.0, 4: -100.0}, allowed=words([3, 4]), masked=True)
    assert np.flatnonzero(np.isfinite(got)).tolist() == [3, 4]
    np.testing.assert_array_equal(got[[3, 4]], SCORES[[3, 4]])


def test_what_the_grammar_allows_is_chosen_even_without_a_score():
    row = SCORES.copy()
    row[[3, 4]] = np.nan, -np.inf
    got = edited(row, allowed=words([3, 4]), masked=True)
    assert np.flatnonzero(np.isfinite(got)).tolist() == [3, 4]


def test_a_grammar_that_allows_nothing_is_passed_over():
    got = edited(allowed=words([98]), masked=True)  # 98 is no token
    np.testing.assert_array_equal(got[:VALID], SCORES[:VALID])
