"""The books of memory: what fits, who goes first, who never goes. Without arrays, with a clock of its own."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from langchain_gemma_jax.engine.residency.ledger import Grant, Ledger, Never, Wait
from langchain_gemma_jax.engine.residency.ledger_entry import State, meet
from tests.engine.residency.books import BUDGET, Kv, entry, resident


class Taken:
    """Conversations that take what is noted of them. If somebody uses the model, all of them are busy."""

    def __init__(self, one, noted):
        self.one, self.noted = one, noted

    def nbytes(self):
        return self.noted[self.one]

    def busy(self):
        return self.noted[self.one] if self.one.leases else 0


def test_what_fits_is_granted_without_an_eviction(pool):
    resident(pool, "a", 1)
    assert pool.can_load(entry("b"), 9) == Grant()
    resident(pool, "b", 2)
    assert isinstance(pool.can_load(entry("c", 10), 9), Grant)


def test_the_least_recently_used_goes_first_and_no_more_than_needed(pool):
    old, new = resident(pool, "old", 1), resident(pool, "new", 2)
    assert pool.can_load(entry("c"), 9) == Grant((old,))
    old.last_used = 3
    assert pool.can_load(entry("c"), 9) == Grant((new,))
    assert pool.can_load(entry("c", 90), 9) == Grant((new, old))


def test_a_small_one_is_spared_where_a_large_one_has_to_go_anyway(pool):
    resident(pool, "small", 1, 5, floor=0, workspace=0)
    large = resident(pool, "large", 2, 70, floor=0, workspace=0)
    assert pool.can_load(entry("c", 50), 9) == Grant((large,))


def test_idle_conversations_go_before_a_model_does(pool):
    resident(pool, "a", 1, kv=(50, 10))
    assert pool.can_load(entry("b"), 9) == Grant((), 26)
    # If they are not enough, they stay, as far as they can.
    alone = Ledger(lambda _: BUDGET)
    gone = resident(alone, "a", 1, 60, kv=(30, 0))
    assert alone.can_load(entry("b", 50), 9) == Grant((gone,), 0)


@pytest.mark.parametrize("fact", ["held", "running", "pinned", "loading", "not ours", "guarded"])
def test_what_may_not_go_does_not(pool, fact):
    one = resident(pool, "a", 1, 60, returns=fact != "not ours", pinned=fact == "pinned")
    one.holds += fact == "held"
    one.running += fact == "running"
    if fact == "loading":
        pool.reserve(one)
    if fact == "guarded":
        pool.settle(one, Kv(0, 0), 9, 0.5)
    decision = pool.can_load(entry("b", 50), 9.1)
    assert decision == (Never(30) if fact in {"pinned", "not ours"} else Wait(30))
    assert pool.to_free(10, "gpu", 9.1) is None


def test_what_is_too_large_alone_is_refused_at_once(pool):
    assert pool.can_load(entry(weights=91), 0) == Never(1)
    assert pool.can_load(entry(weights=90), 0) == Grant()


def test_devices_have_budgets_of_their_own(pool):
    resident(pool, "a", 1, 80)
    assert pool.can_load(entry("b", 80, home="other"), 9) == Grant()


def test_room_for_conversations_is_what_is_left(pool):
    one = resident(pool, "a", 1, 30, kv=(20, 0))
    assert pool.kv_room(one) == 64
    other = resident(pool, "b", 1, 30, kv=(0, 0))
    assert pool.kv_room(one) == 24
    assert pool.kv_room(other) == 100 - 56 - 36
    other.workspace = 50
    assert pool.kv_room(other) == other.floor, "whatever its programs were found to need, one conversation can run"


def test_models_go_for_conversations_only_if_that_is_enough(pool):
    one, idle = resident(pool, "a", 5), resident(pool, "b", 1)
    assert pool.to_free(40, "gpu", 9, but=one) == (idle,)
    assert pool.to_free(41, "gpu", 9, but=one) is None


def test_time_is_up_only_for_those_that_nobody_uses(pool):
    one = resident(pool, "a", 10.0, keep_alive=5.0)
    assert pool.expired(14.9) == []
    assert pool.next_change(14.0) == 1.0
    assert pool.expired(15.0) == [one]
    one.holds = 1
    assert pool.expired(99.0) == []
    assert pool.next_change(99.0) is None
    one.holds = 0
    pool.note_running([one, one], 99.0)
    assert (one.running, pool.expired(99.0)) == (2, [])
    pool.note_running([], 100.0)
    assert pool.next_change(100.0) == 4.0, "it was used until then"
    one.leaving = True
    assert pool.expired(100.0) == [one]


def test_ten_thousand_random_steps_never_pass_the_budget_nor_touch_what_is_in_use():
    rng = random.Random(7)
    pool = Ledger(lambda _home: BUDGET)
    models = [entry(str(number), rng.randint(5, 70), floor=rng.randint(0, 5)) for number in range(6)]
    pool.entries += models
    kv = dict.fromkeys(models, 0)
    evictions = forced = 0
    for now in range(10_000):
        one = rng.choice(models)
        if one.state is State.ABSENT and isinstance(decision := pool.can_load(one, now), Grant):
            for victim in decision.evict:
                assert victim.leases == 0
                assert not victim.pinned
                victim.reset()
                kv[victim] = 0
                evictions += 1
            left = decision.idle_kv
            for other in models:
                given = min(left, other.idle_kv)
                kv[other] -= given
                left -= given
            pool.reserve(one)
        elif one.state is State.LOADING:
            pool.settle(one, Taken(one, kv), now, rng.random())
        elif one.state is State.RESIDENT:
            one.holds = max(0, one.holds + rng.choice([-1, -1, 1]))
            room = pool.kv_room(one)
            kv[one] = max(kv[one] if one.leases else 0, min(room, rng.randint(0, 30)))
            one.pinned = rng.random() < 0.05
            one.leaving = rng.random() < 0.1
        for gone in pool.expired(now):
            assert gone.leases == 0
            gone.reset()
            kv[gone] = 0
            forced += 1
        assert pool.used("gpu") <= BUDGET
    assert evictions > 200
    assert forced > 50


class Devices(NamedTuple):
    devices: tuple[str, ...]


def test_places_that_share_a_device_share_its_memory(pool):
    alone, both, other = Devices(("a",)), Devices(("a", "b")), Devices(("c",))
    one = resident(pool, "one", 1, home=alone)
    resident(pool, "elsewhere", 1, home=other)
    assert [pool.used(home) for home in (alone, both, other)] == [40, 40, 40]
    large = entry("large", 70, home=both)
    assert pool.can_load(large, now=9) == Grant((one,))
    pool.entries.append(large)
    one.holds = 1
    assert pool.can_load(large, now=9) == Wait(20)
    assert (meet(alone, both), meet(both, other), meet("gpu", "gpu"), meet("gpu", both)) == (True, False, True, False)
