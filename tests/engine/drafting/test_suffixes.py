"""Proposals from past answers for a request that goes on like one of them."""

from __future__ import annotations

import random
from unittest.mock import Mock

from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers
from langchain_gemma_jax.engine.drafting.suffixes import Suffixes

SEEDS = range(20)


def test_following_gives_what_a_search_gives():
    """Tokens that do not repeat have one place, which is followed as long as the text goes on like it."""
    for seed in SEEDS:
        rng = random.Random(seed)
        past = PastAnswers()
        for _ in range(30):
            past.add([], [rng.randrange(100_000) for _ in range(80)])
        suffixes, context = Suffixes(lambda past=past: past), [*past.answers[7][:6]]
        find = past.find
        past.find = Mock(side_effect=find)
        for token in past.answers[7][6:40]:
            got = suffixes.propose(context, 7)
            wanted = past.proposal(find(context), 7)
            assert got.tokens == wanted.tokens
            context.append(token)
        assert past.find.call_count == 2, "at first, and when it matched long enough for the longer gram"
        context.append(100_001)
        assert suffixes.propose(context, 7).tokens == ()


def test_without_answers_nothing_is_proposed():
    assert Suffixes(lambda: None).propose([1, 2, 3, 4], 7).tokens == ()


def test_a_way_that_was_overwritten_is_left():
    for seed in SEEDS:
        rng = random.Random(seed)
        past = PastAnswers(128)
        past.add([], range(1000, 1060))
        suffixes, context = Suffixes(lambda past=past: past), [*range(1000, 1010)]
        assert suffixes.propose(context, 3).tokens == (1010, 1011, 1012)
        for _ in range(rng.randrange(3, 9)):  # another request of the scope ends meanwhile
            past.add([], [rng.randrange(1000) for _ in range(50)])
        context.append(1010)
        assert suffixes.propose(context, 3).tokens == ()
