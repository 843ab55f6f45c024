from __future__ import annotations

import doctest
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.drafting import prompt_lookup
from langchain_gemma_jax.engine.drafting.prompt_lookup import PromptLookup
from langchain_gemma_jax.errors import InputError
from tests.counted import growth, lines


class Growing:
    """A context that grows, and its look-up."""

    def __init__(self, ids, options):
        self.most = options.pop("most", 7)
        self.lookup, self.context = PromptLookup(**options), []
        self.extend(ids)

    def __getattr__(self, name):
        return getattr(self.lookup, name)

    def extend(self, ids):
        self.context += ids
        self.propose()

    def propose(self):
        return self.lookup.propose(self.context, self.most).tokens


def lookup(ids=(), **options):
    return Growing(ids, options)


def ids(text):
    return [ord(character) for character in text]


def text(proposal):
    return "".join(map(chr, proposal))


def by_search(ids, most, ngrams):
    """Return the proposal of a look-up, by looking everywhere."""
    for length in sorted(ngrams, reverse=True):
        for behind in range(len(ids) - 1, length - 1, -1):
            if ids[behind - length : behind] == ids[-length:]:
                whole = list(ids)
                for place in range(most):
                    whole.append(whole[behind + place])
                return tuple(whole[len(ids) :])
    return ()


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=9),
    st.integers(1, 5),
    st.sets(st.integers(1, 5), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_a_proposal_follows_the_last_occurrence_of_the_longest_suffix(pieces, most, ngrams):
    found, known = PromptLookup(tuple(ngrams)), []
    for piece in pieces:
        known += piece
        assert found.propose(known, most).tokens == by_search(known, most, ngrams)


@pytest.mark.parametrize(("ngrams", "expected"), [((3, 6, 12), "H"), ((3, 6), "Y"), ((3,), "N")])
def test_a_long_match_is_better_than_a_recent_one(ngrams, expected):
    context = ids("0123456abcdefgH 6abcdefgY _efgN 0123456abcdefg")
    assert text(lookup(context, most=1, ngrams=ngrams).propose()) == expected


def test_a_period_goes_on_past_the_end():
    assert text(lookup(ids("xabcdabc")).propose()) == "dabcdab"
    assert text(lookup(ids("aaaa"), most=3).propose()) == "aaa"


@pytest.mark.parametrize("context", ["", "a", "ab", "aa", "aaa", "abc", "abcdab"])
def test_a_context_that_repeats_nothing_gives_no_draft(context):
    assert lookup(ids(context)).propose() == ()


def test_large_ids_are_told_apart():
    assert lookup([2**31 - 1, 0, 262_143, 5, 2**31 - 1, 0, 262_143], most=1).propose() == (5,)


@pytest.mark.parametrize("options", [{"ngrams": ()}, {"ngrams": (0, 3)}, {"span": 23}])
def test_impossible_options(options):
    with pytest.raises(InputError, match="expected one or more ngrams"):
        PromptLookup(**options)


def test_a_longer_match_is_a_better_sign():
    assert PromptLookup().propose([], 7).odds == ()
    three = PromptLookup().propose(ids("abc1 abc"), 2).odds
    twelve = PromptLookup().propose(ids("abcdefghijkl1 abcdefghijkl"), 2).odds
    assert three[0] < three[1] < twelve[0] < twelve[1] < 1


def test_only_the_last_tokens_are_known():
    found = lookup(range(100), span=50)
    assert found._first == 75
    found.extend([80, 81, 82])
    assert found.propose() == (83, 84, 85, 86, 87, 88, 89)
    for at in range(1000):
        found.extend([at % 90])
        found.propose()
        assert len(found.context) - found._first <= 50
        assert all(len(index) <= 50 for index in found._following.values())
    found.extend([3, 4, 5, 6, 3, 4, 5])
    assert found.propose()[:4] == (6, 3, 4, 5)


def test_what_is_left_after_forgetting_is_indexed_anew():
    found = lookup(range(50), span=50)
    found.propose()
    found.extend([50])
    assert found._first == 26
    found.extend([30, 31, 32])
    assert found.propose()[:3] == (33, 34, 35)


def test_the_index_of_a_long_prompt_is_made_in_few_steps():
    draw = random.Random(1)
    prompt = [draw.randrange(262_144) for _ in range(32_768)]

    found = PromptLookup()
    assert lines(lambda: found.propose(prompt, 7)) < 20 * len(prompt)
    assert len(found._following[3]) > 32_000


def test_a_token_costs_the_same_in_a_long_context_as_in_a_short_one():
    def some_more(length):
        found = lookup(range(length))
        found.propose()

        def generate():
            for token in range(500):
                found.extend((token,))

        return generate

    assert growth(some_more(100), some_more(100_000)) < 2


def test_the_examples_are_true():
    found = doctest.testmod(prompt_lookup)
    assert (found.failed, found.attempted > 1) == (0, True)
