"""A drafter on the device is asked for as many guesses as pay for themselves, and for none where they do not."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.base.draft_sources import MTP
from langchain_gemma_jax.engine.drafting import drafter as drafter_file
from langchain_gemma_jax.engine.drafting.chain import best_count
from langchain_gemma_jax.engine.drafting.drafter import Drafter
from langchain_gemma_jax.engine.drafting.proposal import Proposal
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts

COUNTS = (1, 2, 4, 7)


class Guesses:
    """A drafter that takes its time, on a clock that is not a real one."""

    def __init__(self, clock=None, seconds=0.0, *, ready=True, counts=COUNTS):
        self.clock, self.seconds, self.ready, self.counts, self.asked = clock or [0.0], seconds, ready, counts, []

    def guess(self, count):
        self.asked.append(count)
        self.clock[0] += self.seconds * count
        return tuple(range(1, count + 1))


class Says:
    def __init__(self, *tokens, odds=0.9):
        self.tokens, self.odds = tokens, odds

    def propose(self, context, most):
        return Proposal(self.tokens[:most], (self.odds,) * len(self.tokens[:most]))


def measured(row=0.1, guess=0.05):
    """Costs of a further row, and of a guess, in passes of one row."""
    costs = RowCosts()
    for _ in range(RowCosts.ENOUGH):
        for rows in range(1, 9):
            costs.note(rows, 1.0 + row * (rows - 1))
        for count in COUNTS:
            costs.note_chain(count, guess * count)
    return costs


def test_the_number_of_guesses_follows_from_what_they_and_their_check_cost():
    counts = [best_count(COUNTS, 7, 1.0, measured(cost, cost)).count for cost in (0.0, 0.05, 0.1, 0.3, 1.0)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (7, 0)
    assert best_count(COUNTS, 3, 1.0, measured(0.0, 0.0)).count == 2, "there is no program for three"
    assert best_count((), 7, 1.0, measured()).count == 0
    dear = measured(0.1, 0.0)
    assert best_count(COUNTS, 7, 1.0, dear).count > best_count(COUNTS, 7, 0.5, dear).count


def test_beside_a_request_that_shares_steps_guesses_have_to_give_more():
    """Two that take a step together cost little more than one, and each is checked by itself."""
    costs = measured(0.1, 0.05)
    assert best_count(COUNTS, 7, 1.0, costs, alike=2).rate < best_count(COUNTS, 7, 1.0, costs).rate
    assert best_count(COUNTS, 7, 1.0, costs).pays
    assert not best_count(COUNTS, 7, 0.8, costs, alike=2).pays
    assert best_count(COUNTS, 7, 1.35, costs, alike=2).pays


def test_nothing_is_guessed_before_a_pass_of_one_row_was_measured():
    """Without it, nobody knows whether guesses pay."""
    made, chain = Drafter({}, 7, RowCosts()), Guesses()
    assert made.propose([0], 100, chain=chain) == ()
    assert not made.wants_state
    assert chain.asked == []


def test_without_a_state_to_begin_from_a_check_is_asked_for():
    made, chain = Drafter({}, 7, measured()), Guesses(ready=False)
    assert made.propose([0], 100, chain=chain) == ()
    assert made.wants_state
    chain.ready = True
    draft = made.propose([0, 1], 100, chain=chain)
    assert len(draft) == chain.asked[0] > 1
    assert not made.wants_state
    assert made.record(len(draft), 1) == MTP
    assert made.counts[MTP] == (len(draft), 1)


def test_a_source_that_costs_nothing_comes_first_where_it_promises_as_much():
    chain = Guesses()
    made = Drafter({"a": Says(*range(10, 17), odds=0.95)}, 7, measured())
    assert made.propose([0], 100, chain=chain)[0] == 10
    assert chain.asked == []
    weak = Drafter({"a": Says(10, odds=0.3)}, 7, measured())
    assert weak.propose([0], 100, chain=chain)[0] == 1


def test_only_what_a_grammar_allows_is_checked():
    made, chain = Drafter({}, 7, measured()), Guesses()
    draft = made.propose([0], 100, lambda tokens: tokens[:1], chain)
    assert draft == (1,)
    assert chain.asked[0] > 1
    made.record(1, 1)
    for length in range(1, 40):
        assert made.propose([0] * length, 100, lambda _: (), chain) == ()
    assert len(chain.asked) < 20, "a text that it does not fit"


def test_the_time_of_the_guesses_is_no_time_of_their_check(monkeypatch):
    clock, costs = [0.0], measured(0.1, 0.05)
    monkeypatch.setattr(drafter_file.time, "perf_counter", lambda: clock[0])
    made = Drafter({}, 7, costs)
    for length in range(RowCosts.KEPT):
        draft = made.propose([0] * length, 100, chain=Guesses(clock, 0.1, counts=(4,)))
        made.record(len(draft), 4)
        made.took(5, 1.5 + 0.4)
    assert costs.of_chain(4) == pytest.approx(0.4)
    assert costs.of(5) == pytest.approx(1.5)


def test_one_row_is_measured_again_some_day():
    costs = measured()
    assert costs.know_one
    for _ in range(RowCosts.RENEWED):
        costs.note_chain(2, 0.1)
        costs.note(3, 1.2)
    assert not costs.know_one
    for _ in range(RowCosts.ENOUGH):
        costs.note(1, 0.5)
    assert costs.know_one
    assert costs.of_chain(2) == pytest.approx(0.2)


def seconds_of(monkeypatch, *, right, row, guess, tokens=6000, seed=1):
    """The time of an answer where each guess is right with this probability, beside one without guesses."""
    clock, rng, costs = [0.0], random.Random(seed), RowCosts()
    monkeypatch.setattr(drafter_file.time, "perf_counter", lambda: clock[0])
    done, state = 0, False
    while done < tokens:
        made = Drafter({}, 7, costs)  # one request after the other
        length = 0
        while length < 2000 and done < tokens:
            began = clock[0]
            chain = Guesses(clock, guess, ready=state)
            draft = made.propose(range(length), 100, chain=chain)
            rows = 1 + len(draft)
            clock[0] += 1.0 + row * (rows - 1)
            state = bool(draft) or made.wants_state
            accepted = next((place for place in range(len(draft)) if rng.random() > right), len(draft))
            if draft:
                made.record(len(draft), accepted)
            made.took(rows, clock[0] - began)
            length, done = length + accepted + 1, done + accepted + 1
    return clock[0] / done


@pytest.mark.parametrize("right", [0.0, 0.2, 0.4, 0.6, 0.8, 0.95])
@pytest.mark.parametrize(("row", "guess"), [(0.02, 0.02), (0.1, 0.1), (0.2, 0.3), (0.8, 0.1), (1.0, 1.0)])
def test_an_answer_takes_at_most_three_hundredths_longer_and_much_less_where_guesses_are_good(
    right, row, guess, monkeypatch
):
    each = seconds_of(monkeypatch, right=right, row=row, guess=guess)
    assert each < 1 / 0.97
    best = min(
        (1.0 + row * count + guess * count) / sum(right**place for place in range(count + 1)) for count in (0, *COUNTS)
    )
    if best < 0.7:
        assert each < best + 0.5 * (1.0 - best), "most of what there is to gain"
