"""The latest records of an engine, for people who watch it."""

from __future__ import annotations

from types import SimpleNamespace

from langchain_gemma_jax.engine.base.events import Events, Finished, Timings, Tripped
from langchain_gemma_jax.observe.latest import KEPT, Latest

TIMES = Timings(0.0, 0.0, 0.0, 0.0)


def over(number: int) -> Finished:
    return Finished("m", "", "", "stop", False, 1, 0, 1, 0, 0, 0, 0, TIMES, number)


def test_the_latest_records_are_kept_and_no_engine_is_listened_to_twice():
    latest, first, second = Latest(), SimpleNamespace(events=Events()), SimpleNamespace(events=Events())
    first.events.publish(over(0))  # nobody watches yet
    for _ in range(3):
        latest.follow(first)
    for number in range(1, KEPT + 10):
        first.events.publish(over(number))
    assert [each.number for each in latest.finished] == list(range(10, KEPT + 10))
    latest.follow(second)
    second.events.publish(Tripped("recompile", "", "why", "", "warn"))
    second.events.publish(over(1000))
    assert [each.reason for each in latest.trips] == ["why"]
    assert latest.finished[-1].number == 1000
    assert (len(first.events._listeners), len(second.events._listeners)) == (0, 2)
