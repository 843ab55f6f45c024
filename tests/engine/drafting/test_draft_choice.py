"""The number of drafted tokens: by simulation it is the best one."""

from __future__ import annotations

import random

from langchain_gemma_jax.engine.drafting.draft_choice import PAYS, choose, expected_of
from langchain_gemma_jax.engine.drafting.proposal import Proposal


class Costs:
    def __init__(self, each):
        self.each = each

    def of(self, rows):
        return 1 + self.each * (rows - 1)


def accepted(odds, rng):
    count = 0
    while count < len(odds) and rng.random() < odds[count]:
        count += 1
    return count


def test_the_expected_number_is_what_comes_of_many():
    for seed in range(10):
        rng = random.Random(seed)
        odds = tuple(rng.random() for _ in range(rng.randrange(1, 8)))
        mean = sum(accepted(odds, rng) for _ in range(20_000)) / 20_000
        assert abs(mean - expected_of(Proposal(tuple(range(len(odds))), odds))) < 0.05


def test_the_choice_gives_the_most_tokens_for_the_time():
    for seed in range(50):
        rng = random.Random(seed)
        odds = tuple(rng.random() ** 0.3 for _ in range(7))
        proposal, costs = Proposal(tuple(range(7)), odds), Costs(rng.random())
        rates = [(1 + expected_of(proposal.first(count))) / costs.of(count + 1) for count in range(8)]
        found = choose(proposal, 1.0, costs)
        assert found.rate >= max(rates) - 0.1  # odds are cut at what is sure
        assert abs(rates[found.count] - max(rates)) < 0.1
        assert found.pays is (found.count > 0 and found.rate > PAYS)


def test_dear_rows_unlikely_tokens_and_lost_trust_mean_no_drafts():
    likely = Proposal((1, 2, 3), (0.9, 0.9, 0.9))
    assert choose(likely, 1.0, Costs(0.1)).count == 3
    assert not choose(likely, 1.0, Costs(1.0)).pays
    assert not choose(Proposal((1,), (0.1,)), 1.0, Costs(0.1)).pays
    assert not choose(likely, 0.05, Costs(0.1)).pays
    assert not choose(Proposal(), 1.0, Costs(0.0)).pays


def test_dearer_rows_mean_shorter_drafts():
    proposal = Proposal(tuple(range(7)), (0.8,) * 7)
    counts = [choose(proposal, 1.0, Costs(each / 20)).count for each in range(20)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (7, 0)
