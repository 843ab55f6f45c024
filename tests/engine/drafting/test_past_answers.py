"""The index of past answers, beside a search through all of them."""

from __future__ import annotations

import doctest
import random

import pytest

from langchain_gemma_jax.engine.drafting import past_answers
from langchain_gemma_jax.engine.drafting.past_answers import NOT_FOUND, PastAnswers
from tests.counted import growth, lines

SEEDS = range(20)


def said(rng, count, letters=4):
    return [rng.randrange(letters) for _ in range(count)]


def longest(answers, context):
    """The longest end of the context that was said and went on, of the lengths that are told apart."""
    ends = [length for length in PastAnswers.MATCHES if length <= len(context)]
    for length in ends:
        wanted = context[-length:]
        for answer in answers:
            if any(answer[at : at + length] == wanted for at in range(len(answer) - length)):
                return length
    return 0


def is_said(answers, tokens):
    return any(answer[at : at + len(tokens)] == tokens for answer in answers for at in range(len(answer)))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_proposed_was_said_behind_what_the_context_ends_with(seed):
    rng = random.Random(seed)
    past, answers = PastAnswers(), []
    for _ in range(rng.randrange(1, 12)):
        prompt, answer = said(rng, rng.randrange(30)), said(rng, rng.randrange(1, 60))
        past.add(prompt, answer)
        answers.append([*prompt[-past.LEAD :], *answer])
        context = said(rng, 3) + rng.choice(answers)[: rng.randrange(3, 40)]
        found = past.find(context)
        proposal = past.proposal(found, 7)
        assert found.match <= longest(answers, context)
        if found.match >= 16:
            assert found.match == longest(answers, context)
        assert bool(proposal.tokens) is (found is not NOT_FOUND)
        assert len(proposal.tokens) == len(proposal.odds) <= 7
        assert all(0 < odds < 1 for odds in proposal.odds)
        if proposal.tokens:
            assert is_said(answers, [*context[-found.match :], proposal.tokens[0]])
            assert all(is_said(answers, [*proposal.tokens[:count]]) for count in range(1, len(proposal.tokens)))


def test_a_unique_place_is_found_however_much_was_said():
    for seed in SEEDS:
        rng = random.Random(seed)
        past = PastAnswers()
        answers = [[rng.randrange(200_000) for _ in range(50)] for _ in range(100)]
        for answer in answers:
            past.add([], answer)
        for answer in answers:
            at = rng.randrange(3, 40)
            assert past.proposal(past.find(answer[:at]), 7).tokens == tuple(answer[at : at + 7])


def test_the_most_votes_win_and_of_as_many_the_newest():
    past = PastAnswers()
    for last in (5, 6, 5, 7):
        past.add([], [1, 2, 3, 4, last, last + 10])
    proposal = past.proposal(past.find([1, 2, 3]), 7)
    assert proposal.tokens == (4, 5, 15)
    assert proposal.odds[0] == pytest.approx(3 / 5)
    assert proposal.odds[1] == pytest.approx(2 / 4 * 4 / 6)
    past.add([], [1, 2, 3, 4, 7, 17])  # of the latest four, two say 5 or 7 each: the newest
    assert past.proposal(past.find([1, 2, 3]), 7).tokens == (4, 7, 17)


def test_answers_do_not_run_into_each_other():
    past = PastAnswers()
    past.add([], [1, 2, 3, 4, 5])
    past.add([], [6, 7, 8, 9])
    assert past.proposal(past.find([2, 3, 4]), 7).tokens == (5,)
    assert past.find([3, 4, 5]) is NOT_FOUND
    for context in ([4, 5, 6], [5, 6, 7]):  # only what is in one answer is a match
        found = past.find(context)
        assert (found.match, past.proposal(found, 7).tokens) == (1, tuple(range(context[-1] + 1, 10)))


def test_the_beginning_of_an_answer_is_found_by_the_end_of_its_prompt():
    past = PastAnswers()
    past.add([*range(100, 200)], [1, 2, 3])
    assert past.proposal(past.find([9, 197, 198, 199]), 7).tokens == (1, 2, 3)
    assert past.find(range(100, 150)) is NOT_FOUND, "of a prompt only the end is kept"


def test_short_contexts_match_by_their_last_token_with_little_hope():
    past = PastAnswers()
    past.add([], [1, 2, 3, 4, 5])
    assert past.find([]) is NOT_FOUND
    for context in ([1], [1, 2], [9, 9, 9, 2]):
        found = past.proposal(past.find(context), 7)
        assert (found.tokens[0], found.odds[0]) == (context[-1] + 1, pytest.approx(1 / 3))
    assert past.proposal(past.find([1, 2, 3]), 7).odds[0] == pytest.approx(3 / 5)


@pytest.mark.parametrize("most", [64, 1000])
def test_bytes_stay_in_their_bound_and_the_newest_is_known(most):
    for seed in SEEDS:
        rng = random.Random(seed)
        past, sizes = PastAnswers(most), []
        for _ in range(60):
            answer = said(rng, rng.randrange(1, 120), 50_000)
            past.add(said(rng, 20, 50_000), answer)
            sizes.append(past.nbytes)
            assert len(past) <= most
            assert sum(map(len, past.answers)) < most
            # What the ring does not have is not proposed.
            for kept in past.answers:
                found = past.proposal(past.find(kept[:5].tolist()), 7)
                assert not found.tokens or is_said([each.tolist() for each in past.answers], [*found.tokens])
        numbers = 1 + len(PastAnswers.GRAMS)  # of a place
        assert max(sizes) < 4.5 * numbers * most + len(PastAnswers.GRAMS) * 4 * PastAnswers.BUCKETS[1] + 4096
        newest = past.answers[-1].tolist()
        right = sum(past.proposal(past.find(newest[:at]), 1).tokens == (newest[at],) for at in range(3, len(newest)))
        assert right >= len(newest) - 3 - max(past.MATCHES), "all but those across the end of the ring"


def test_growing_forgets_nothing():
    rng = random.Random(1)
    past, answers = PastAnswers(), []
    while len(past) < 3 * PastAnswers.BUCKETS[1]:
        answers.append(said(rng, 100, 250_000))
        past.add([], answers[-1])
    assert len(past._latest[0]) == PastAnswers.BUCKETS[2]
    for answer in answers:
        assert past.proposal(past.find(answer[:50]), 7).tokens == tuple(answer[50:57])
    assert [each.tolist() for each in past.answers] == answers


def test_a_proposal_costs_the_same_in_much_as_in_little():
    def proposals(count):
        rng = random.Random(1)
        past = PastAnswers()
        for _ in range(count):
            past.add([], said(rng, 100, 3))  # which is the worst: everything repeats
        contexts = [said(rng, 40, 3) for _ in range(50)]

        def ask():
            for context in contexts:
                past.proposal(past.find(context), 7)

        return ask

    assert growth(proposals(10), proposals(500)) < 2
    assert lines(proposals(200)) < 50 * 250


def test_the_examples_are_true():
    found = doctest.testmod(past_answers)
    assert (found.failed, found.attempted > 3) == (0, True)
