"""The choice of what is kept and fetched, by what things took here."""

from __future__ import annotations

from langchain_gemma_jax.engine.conversations.transfer_costs import Rate, TransferCosts


def rate(*seconds):
    found = Rate()
    for each in seconds:
        found.add(each, 1)
    return found


def test_a_rate_is_the_median_of_the_latest():
    assert Rate().seconds(5) is None
    assert rate(1, 1, 50).seconds(10) == 10
    assert rate(*[9] * 20, *[1] * 9).seconds(2) == 2
    found = rate(1)
    found.add(5.0, 0)
    assert found.seconds(1) == 1


def test_a_conversation_is_kept_where_moving_it_out_and_back_is_faster_than_reading_it():
    costs = TransferCosts()
    assert not costs.worth_keeping(10, 10, Rate()), "who knows"
    assert costs.worth_keeping(10, 10, rate(1)), "moving was never measured: it is tried"
    costs.to_host.add(3, 1)
    costs.to_device.add(2, 1)
    assert costs.worth_keeping(10, 51, rate(1))
    assert not costs.worth_keeping(10, 50, rate(1))


def test_it_comes_back_where_that_is_faster_than_reading_what_is_not_there_anyway():
    costs = TransferCosts()
    costs.to_device.add(2, 1)
    assert costs.worth_fetching(10, 21, rate(1))
    assert not costs.worth_fetching(10, 20, rate(1))
    assert not costs.worth_fetching(0, 0, Rate())
