"""How many replicas a load asks for."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.scale.demand import ReplicaDemand, ReplicaLoad

DEMAND = ReplicaDemand(rows=8)


def load(running: float, waiting: float = 0.0, oldest: float = 0.0) -> ReplicaLoad:
    return ReplicaLoad(running, waiting, oldest)


@pytest.mark.parametrize(
    ("loads", "queued", "wanted"),
    [
        ([], 0, 0),  # the fewest replicas are the configuration's to say
        ([load(6)], 0, 1),  # six of eight rows: what is free is for what comes
        ([load(7)], 0, 2),
        ([load(8, 8)], 0, 3),
        ([load(8, 8)], 20, 6),  # those count too that no replica has taken
        ([load(2, 1, oldest=6)], 0, 2),  # few calls, and one waits for too long: the others are slow ones
        ([load(2, 1, oldest=4)], 0, 1),
        ([load(1), load(1), load(1)], 0, 1),
        ([load(3), load(3)], 0, 2),  # would fit one, without room to spare
        ([load(2), load(2)], 0, 1),
    ],
)
def test_replicas_wanted(loads, queued, wanted):
    assert DEMAND.replicas(loads, now=len(loads), queued=queued) == wanted


def test_a_load_that_stays_is_answered_by_a_number_that_stays():
    drawn = random.Random(1)
    for _ in range(2000):
        calls, now = drawn.uniform(0, 200), drawn.randint(1, 40)
        seen = []
        for _ in range(50):
            now = DEMAND.replicas([load(calls / now)] * now, now=now) if now else 0
            seen.append(now)
            if not now:
                break
        assert seen[-1] == seen[0], "one step, and then no more"
        assert calls <= seen[-1] * DEMAND.rows * DEMAND.busy + 1e-6
