"""Budgets that threads share: never exceeded, first come first served, and left by whoever is stopped."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax.media.budget import Lease, MediaBudget, leased, memory
from langchain_gemma_jax.stopping import Stop, StoppedError


def waits(budget: MediaBudget, count: int) -> None:
    """Return when so many wait."""
    while len(budget._waiting) < count:
        threading.Event().wait(0.001)


def test_no_more_is_held_than_there_is_and_whoever_wants_all_gets_its_turn():
    budget, held, most = MediaBudget(10), [], []

    def work(number: int) -> int:
        with budget.taken(1 + number % 11):  # eleven are more than there are
            held.append(min(10, 1 + number % 11))
            most.append((sum(held), budget.held))
            held.remove(min(10, 1 + number % 11))
        return number

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(work, range(200))) == list(range(200))
    assert max(budget_held for _, budget_held in most) <= 10
    assert budget.held == 0


def test_the_first_one_is_first_however_much_it_wants():
    budget, order = MediaBudget(10), []
    held = budget.take(5)

    def want(amount: int) -> None:
        with budget.taken(amount):
            order.append(amount)

    threads = []
    for number, amount in enumerate((10, 1)):  # one would be there already
        threads.append(threading.Thread(target=want, args=(amount,)))
        threads[-1].start()
        waits(budget, number + 1)
    assert order == []
    budget.give_back(held)
    for thread in threads:
        thread.join()
    assert order == [10, 1]


def test_whoever_is_stopped_leaves_the_line():
    budget = MediaBudget(10)
    held, stop, raised = budget.take(10), Stop(), []

    def want() -> None:
        with stop.over_this_work(), pytest.raises(StoppedError):
            budget.take(1)
        raised.append(True)

    thread = threading.Thread(target=want)
    thread.start()
    waits(budget, 1)
    stop.ask()
    thread.join()
    with Stop(0.0).over_this_work(), pytest.raises(StoppedError):  # a deadline that has passed
        budget.take(1)
    assert raised
    assert not budget._waiting
    budget.give_back(held)
    with budget.taken(10):
        assert budget.held == 10


def test_a_lease_holds_what_is_needed_at_most_once_and_gives_it_back():
    budget = MediaBudget(10)
    lease = Lease(budget)
    for needed, held in ((4, 4), (3, 4), (7, 7), (99, 10), (99, 10)):
        lease.need(needed)
        assert (lease.held, budget.held) == (held, held)
    lease.close()
    lease.close()
    assert budget.held == 0
    with leased(lease) as same:
        same.need(5)
    assert (same, budget.held) == (lease, 5), "it is its owner who closes it"
    lease.close()
    with leased() as own:
        own.need(3)
        assert memory().held >= 3
    assert own.held == 0
