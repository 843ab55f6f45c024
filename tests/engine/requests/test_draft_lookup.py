from __future__ import annotations

import doctest
import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_gemma_jax.engine.requests import draft_lookup
from langchain_gemma_jax.engine.requests.draft_lookup import DraftLookup
from langchain_gemma_jax.errors import InputError
from tests.counted import growth, lines


class Growing:
    """A context that grows, and its look-up."""

    def __init__(self, ids, options):
        self.lookup, self.context = DraftLookup(**options), []
        self.extend(ids)

    def __getattr__(self, name):
        return getattr(self.lookup, name)

    def extend(self, ids):
        self.context += ids
        self.propose()

    def propose(self):
        return self.lookup.propose(self.context)


def lookup(ids=(), **options):
    return Growing(ids, options)


def ids(text):
    return [ord(character) for character in text]


def text(proposal):
    return "".join(map(chr, proposal))


def by_search(ids, limit, ngrams):
    """What a look-up should propose, by looking everywhere."""
    for length in sorted(ngrams, reverse=True):
        for behind in range(len(ids) - 1, length - 1, -1):
            if ids[behind - length : behind] == ids[-length:]:
                whole = list(ids)
                for place in range(limit):
                    whole.append(whole[behind + place])
                return tuple(whole[len(ids) :])
    return ()


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=9), max_size=9),
    st.integers(1, 5),
    st.sets(st.integers(1, 5), min_size=1),
)
@settings(max_examples=200, deadline=None)
def test_a_proposal_follows_the_last_occurrence_of_the_longest_suffix(pieces, limit, ngrams):
    found, known = DraftLookup(limit, tuple(ngrams)), []
    for piece in pieces:
        known += piece
        assert found.propose(known) == by_search(known, limit, ngrams)


@pytest.mark.parametrize(("ngrams", "expected"), [((3, 6, 12), "H"), ((3, 6), "Y"), ((3,), "N")])
def test_a_long_match_is_better_than_a_recent_one(ngrams, expected):
    context = ids("0123456abcdefgH 6abcdefgY _efgN 0123456abcdefg")
    assert text(lookup(context, limit=1, ngrams=ngrams).propose()) == expected


def test_a_period_goes_on_past_the_end():
    assert text(lookup(ids("xabcdabc")).propose()) == "dabcdab"
    assert text(lookup(ids("aaaa"), limit=3).propose()) == "aaa"


@pytest.mark.parametrize("context", ["", "a", "ab", "aa", "aaa", "abc", "abcdab"])
def test_a_context_that_repeats_nothing_gives_no_draft(context):
    assert lookup(ids(context)).propose() == ()


def test_large_ids_are_told_apart():
    assert lookup([2**31 - 1, 0, 262_143, 5, 2**31 - 1, 0, 262_143], limit=1).propose() == (5,)


@pytest.mark.parametrize("options", [{"limit": 0}, {"ngrams": ()}, {"ngrams": (0, 3)}, {"span": 23}])
def test_impossible_options(options):
    with pytest.raises(InputError, match="expected limit >= 1"):
        DraftLookup(**options)


def test_what_was_drafted_is_counted():
    found = lookup()
    found.record(7, 3)
    found.record(2, 2)
    found.record(0, 0)
    assert (found.drafted, found.accepted) == (9, 5)
    for proposed, accepted in ((1, 2), (1, -1)):
        with pytest.raises(InputError, match="0 <= accepted <= proposed"):
            found.record(proposed, accepted)


def drafts_until_it_pauses(found, proposed, accepted):
    return next(count for count in itertools.count() if not found.active or found.record(proposed, accepted))


def test_one_bad_draft_changes_nothing_three_do():
    found = lookup(ids("aaaa"))
    for _ in range(2):
        found.record(7, 0)
        assert found.active
    found.record(7, 0)
    assert not found.active
    assert found.propose() == ()


def test_short_drafts_weigh_less():
    found = lookup()
    for _ in range(16):
        found.record(1, 0)
    assert found.active
    found.record(1, 0)
    assert not found.active


def test_a_rate_that_pays_goes_on_for_ever_and_one_that_does_not_stops():
    pays, does_not = lookup(), lookup()
    for _ in range(200):
        pays.record(10, 4)
        does_not.record(10, 2)
    assert pays.active
    assert not does_not.active


def test_pauses_end_with_a_trial_and_double():
    found, pauses = lookup(ids("aaaa")), []
    while not pauses or pauses[-1] < 1000:
        while found.active:
            found.record(7, 0)
        pauses.append(0)
        while not found.active:
            found.extend(ids("a"))
            pauses[-1] += 1
    assert pauses == [64, 128, 256, 512, 1024]
    assert found.propose() == tuple(ids("aaaaaaa"))
    found.record(7, 0)
    assert not found.active  # one bad draft was enough


def test_after_a_good_time_pauses_are_short_again():
    found = lookup()
    for _ in range(6):
        found.record(7, 0)
        found.extend([1] * 300)
    while found.active:
        found.record(7, 0)
    found.extend([1] * 10_000)
    found.record(7, 5)
    for _ in range(9):
        found.record(7, 7)
    while found.active:
        found.record(7, 0)
    found.extend([1] * 64)
    assert found.active


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


def test_a_pause_counts_tokens_that_were_forgotten_too():
    found = lookup(range(60), span=50)
    for _ in range(3):
        found.record(7, 0)
    found.extend(range(63))
    assert not found.active
    found.extend([0])
    assert found.active


def test_the_index_of_a_long_prompt_is_made_in_few_steps():
    draw = random.Random(1)
    prompt = [draw.randrange(262_144) for _ in range(32_768)]

    found = DraftLookup()
    assert lines(lambda: found.propose(prompt)) < 20 * len(prompt)
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
    found = doctest.testmod(draft_lookup)
    assert (found.failed, found.attempted > 2) == (0, True)
