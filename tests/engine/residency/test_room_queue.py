"""Who waits for room: first come, first served; and what those hear who wait for a model."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State
from langchain_gemma_jax.engine.residency.room_queue import RoomQueue
from langchain_gemma_jax.errors import ClosedError, DeviceMemoryError


class Model:
    """The parts of a known model that the queue looks at."""

    def __init__(self, name: str, load_s: float = 0.0):
        self.name, self.entry = name, LedgerEntry(name, "gpu", 30, 4, 6, returns=True, load_s=load_s)


class Host:
    """An engine of which requests wait for some models."""

    def __init__(self):
        self.waiting, self.loaded, self.refused = set(), [], []

    def load_again(self, model):
        self.loaded.append(model.name)

    def is_waited_for(self, model):
        return model.name in self.waiting

    def refuse(self, model, error):
        self.refused.append((model.name, str(error)))


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def queue(host):
    return RoomQueue(host)


def test_the_first_who_came_is_the_first_and_nobody_else_is_before_he_has_room(queue):
    first, second = Model("a"), Model("b")
    one, other = queue.line_up(first.entry), queue.line_up(second.entry)
    assert queue.waits
    assert queue.first() is queue.first(), "looking changes nothing"
    queue.grant(queue.first())
    assert (one.done(), other.done()) == (True, False)
    assert queue.first().entry is second.entry
    queue.grant(queue.first())
    assert queue.first() is None
    assert not queue.waits


def test_a_model_is_fetched_once_for_all_who_want_it_when_there_is_room(queue, host):
    one = Model("a")
    host.waiting.add("a")
    coming = queue.want(one)
    assert queue.want(one, lambda: True) is coming
    assert host.loaded == []
    queue.grant(queue.first())
    assert (host.loaded, coming.done()) == (["a"], False)
    assert queue.want(one) is coming, "it is on its way"
    one.entry.state = State.RESIDENT
    queue.arrived(one)
    assert coming.result(0) is None
    assert queue.want(one).done(), "it is there"
    assert host.loaded == ["a"]


def test_who_wants_nothing_any_more_holds_up_nobody(queue, host):
    requests_went, caller_left, still = Model("a"), Model("b"), Model("c")
    host.waiting.add("a")
    waits = [True]
    gone = [queue.want(requests_went), queue.want(caller_left, lambda: bool(waits))]
    host.waiting.add("c")
    stays = queue.want(still)
    host.waiting.discard("a")
    waits.clear()
    assert queue.first().entry is still.entry
    assert all(each.cancelled() for each in gone)
    assert not stays.done()
    assert host.loaded == host.refused == []
    host.waiting.add("a")
    assert queue.want(requests_went) is not gone[0], "who asks again begins again"


def test_what_never_fits_is_told_to_callers_and_to_requests(queue, host):
    one, other = Model("a"), Model("b")
    host.waiting |= {"a", "b"}
    first, second = queue.want(one), queue.want(other)
    queue.refuse(queue.first(), DeviceMemoryError("It is too large.", ()))
    with pytest.raises(DeviceMemoryError, match="too large"):
        first.result(0)
    assert host.refused == [("a", "It is too large.")]
    assert queue.first().entry is other.entry
    queue.grant(queue.first())
    other.entry.state = State.LOADING
    queue.failed(other, OSError("Its files are gone."))
    with pytest.raises(OSError, match="files are gone"):
        second.result(0)
    assert host.refused[1] == ("b", "Its files are gone.")
    assert other.entry.state is State.ABSENT, "its bytes are free again"


def test_nobody_overtakes_who_has_waited_as_long_as_loading_takes(queue):
    slow = Model("a", load_s=5.0)
    queue.line_up(slow.entry)
    since = queue.first().since
    assert not queue.blocked(since + 5.0)
    assert queue.blocked(since + 5.1)
    queue.abandon(slow.entry)
    assert not queue.blocked(since + 100)
    assert queue.first() is None


def test_when_the_engine_ends_nobody_goes_on_waiting(queue, host):
    one, lined_up = Model("a"), Model("b")
    host.waiting.add("a")
    on_its_way = queue.want(one)
    queue.grant(queue.first())
    first_time = queue.line_up(lined_up.entry)
    queue.end()
    for each in (on_its_way, first_time):
        with pytest.raises(ClosedError):
            each.result(0)
    assert not queue.waits
