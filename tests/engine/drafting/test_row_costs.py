"""Costs of passes of several rows follow from the times that are given: no clock is read."""

from __future__ import annotations

import doctest
import random

import pytest

from langchain_gemma_jax.engine.drafting import row_costs
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts


def measured(seconds, times=5):
    costs = RowCosts()
    for rows, each in seconds.items():
        for _ in range(times):
            costs.note(rows, each)
    return costs


def test_unmeasured_costs_are_a_guess():
    assert [round(RowCosts().of(rows), 3) for rows in (1, 2, 8)] == [1.0, 1.2, 2.4]
    assert measured({8: 5.0}).of(8) == pytest.approx(2.4), "without a pass of one row there is nothing to compare with"


def test_what_was_measured_counts_and_what_lies_between_is_interpolated():
    costs = measured({1: 10.0, 4: 13.0, 8: 30.0})
    assert [costs.of(rows) for rows in (1, 4, 8)] == pytest.approx([1.0, 1.3, 3.0])
    assert [costs.of(rows) for rows in (2, 3, 6, 10)] == pytest.approx([1.1, 1.2, 2.15, 3 + 2 * 2 / 7])


def test_no_pass_is_cheaper_than_one_of_a_row():
    assert measured({1: 10.0, 4: 1.0}).of(4) == 1.0
    assert measured({1: 0.0, 4: 1.0}).of(4) == pytest.approx(1.6), "a clock that stands still measures nothing"


def test_fewer_rows_cost_at_most_what_more_rows_do():
    """Rows that were measured rarely, while the machine was busy, do not stay dear for ever."""
    costs = measured({1: 10.0, 2: 12.0, 5: 40.0, 8: 15.0})
    assert [costs.of(rows) for rows in (1, 2, 5, 8)] == pytest.approx([1.0, 1.2, 1.5, 1.5])
    for seed in range(20):
        rng = random.Random(seed)
        costs = measured({rows: rng.uniform(1, 9) for rows in rng.sample(range(2, 16), 6)} | {1: 1.0})
        found = [costs.of(rows) for rows in range(1, 17)]
        assert found == sorted(found)
        assert found[0] == 1.0


def test_a_few_slow_passes_change_nothing():
    for seed in range(20):
        rng = random.Random(seed)
        costs = RowCosts()
        for _ in range(RowCosts.KEPT):
            costs.note(1, rng.uniform(0.009, 0.011))
            costs.note(8, rng.uniform(0.018, 0.022))
        for _ in range(RowCosts.KEPT // 3):  # it was swapped out, or something was compiled
            costs.note(8, rng.uniform(1, 9))
        assert 1.6 < costs.of(8) < 2.5


def test_few_measurements_do_not_count_yet_and_old_ones_no_more():
    assert measured({1: 1.0, 8: 8.0}, RowCosts.ENOUGH - 1).of(8) == pytest.approx(2.4)
    costs = measured({1: 1.0, 8: 8.0}, RowCosts.ENOUGH)
    assert costs.of(8) == 8.0
    for _ in range(RowCosts.KEPT):
        costs.note(8, 2.0)
    assert costs.of(8) == 2.0


def test_the_examples_are_true():
    found = doctest.testmod(row_costs)
    assert (found.failed, found.attempted > 3) == (0, True)


def test_first_runs_of_a_program_do_not_make_rows_dear():
    costs = RowCosts()
    for seconds in (0.010, 0.010, 0.010):
        costs.note(1, seconds)
    for seconds in (0.500, 0.400, 0.300, 0.016, 0.015):  # the first ones plan what the later ones run
        costs.note(8, seconds)
    assert costs.of(8) == pytest.approx(1.6)


def test_steps_that_overlap_are_no_shorter_than_they_are():
    """A step that is handed over early ends soon after the one before it, which took longer."""
    costs = RowCosts()
    for _ in range(RowCosts.KEPT // 5):
        for seconds in (0.012, 0.004, 0.008, 0.008, 0.008):
            costs.note(1, seconds)
            costs.note(8, 0.012)
    assert costs.of(8) == pytest.approx(1.5)


def test_rows_cost_at_most_what_as_many_passes_do():
    costs = RowCosts()
    for _ in range(RowCosts.ENOUGH):
        costs.note(1, 0.010)
        costs.note(2, 0.0274)
    assert costs.of(2) == 2
    assert all(costs.of(rows) <= rows for rows in range(1, 17))
