from __future__ import annotations

import doctest

from langchain_gemma_jax.engine.drafting import proposal
from langchain_gemma_jax.engine.drafting.proposal import Proposal, odds_behind


def test_the_first_tokens_keep_their_odds():
    assert Proposal((1, 2, 3), (0.9, 0.5, 0.1)).first(2) == Proposal((1, 2), (0.9, 0.5))


def test_odds_grow_with_the_match_and_with_agreement():
    for match in range(1, 33):
        odds = odds_behind(match, 7)
        assert list(odds) == sorted(odds)
        assert all(0 < each < 1 for each in odds)
        assert odds < odds_behind(match + 1, 7)
        assert odds_behind(match, 7, 0.5) == tuple(each / 2 for each in odds)


def test_the_examples_are_true():
    found = doctest.testmod(proposal)
    assert (found.failed, found.attempted) == (0, 1)
