"""Time limits of loading: all of it counts, whoever waits is free at once, and what nobody wants leaves nothing."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from contextlib import contextmanager

import pytest

from langchain_gemma_jax.engine.api.model_loading import ModelLoader
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.clock import ForRoom
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.errors import ClosedError, DeadlineError
from tests.engine.model_files import FilesAround
from tests.engine.residents_support import folders_in, need_of
from tests.engine.tiny import settle
from tests.hub_server import HubServer
from tests.tiny_gemma import tiny_gemma
from tests.waiting import LONG, until

SMALL = Ladders(chunks=(16,), capacities=(64,), rows=(1,))
LIMIT = 0.3  # seconds that a caller allows
LONGER = 1.5  # the same where the first of what it does is to have been done, whatever else the machine does


@pytest.fixture
def folders(tmp_path):
    return folders_in(tmp_path)


class Slow:
    """Files that are not opened before a gate is open; or, with ``planned``, are opened, and then not read."""

    def __init__(self, *, planned=False):
        self.gate, self.began, self.planned, self.calls, self.stops = (
            threading.Event(),
            threading.Event(),
            planned,
            0,
            [],
        )

    @property
    def files(self):
        return FilesAround(opening=self.opening, reading=self.reading)

    def opening(self, _, stop):
        self.calls += 1
        self.stops.append(stop)
        if not self.planned:
            self.wait(stop)

    def reading(self, _):
        if self.planned:
            self.wait()

    def wait(self, stop=None):
        self.began.set()
        while not self.gate.wait(0.01):
            if stop is not None:
                stop.check()


@contextmanager
def in_time(match, limit=LIMIT):
    """A deadline error, when the limit is over: what it waits for would not come by itself."""
    with pytest.raises(DeadlineError, match=match) as caught:
        yield
    told = re.search(r"(?:up after|within) (\d+\.\d) s", str(caught.value))
    assert float(told[1]) >= limit, str(caught.value)


def loaders():
    return [thread for thread in threading.enumerate() if thread.name == "gemma-jax-load"]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with HubServer() as server:
        server.add("org/model", tiny_gemma())
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.mark.long
@pytest.mark.parametrize(
    ("where", "drip"), [("GET /org/model/resolve", 0.02), ("api/models", 0.02), ("GET /org/model/resolve", 90.0)]
)
def test_a_dripping_download_ends_with_the_last_who_waits_and_leaves_nothing(engine_of, hub, tmp_path, where, drip):
    engine = engine_of(ladders=SMALL)
    hub.fail(where, times=99, drip=drip)
    with in_time("loading 'org/model' .*fetching and checking its files", limit=1.0):
        engine.load("org/model", timeout=1.0)
    until(lambda: not loaders())  # its thread has gone, also while nothing is sent
    until(lambda: drip > 1 or hub.drips == 0)  # its connections are closed
    assert not [name for _, _, names in os.walk(tmp_path / "hub") for name in names if "incomplete" in name]
    assert engine.models() == ()
    hub.faults.clear()
    assert engine.load("org/model", timeout=LONG).name == "org/model"


def test_a_download_that_somebody_waits_for_goes_on_without_the_others(engine_of, hub):
    engine = engine_of(ladders=SMALL)
    asked, answer = threading.Event(), threading.Event()
    hub.fail("GET /org/model/resolve", action=lambda: asked.set() or answer.wait(LONG))
    found = []
    patient = threading.Thread(target=lambda: found.append(engine.load("org/model")))
    patient.start()
    assert asked.wait(LONG)
    with in_time("fetching"):
        engine.load("org/model", timeout=LIMIT)
    answer.set()
    patient.join(LONG)
    assert [served.name for served in found] == ["org/model"]


def test_weights_that_are_being_read_are_there_for_the_next_call(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow(planned=True)
    engine._loader._files = slow.files
    with in_time("reading its weights", limit=LONGER):
        engine.load(folders[0], timeout=LONGER)
    slow.gate.set()
    assert engine.load(folders[0], timeout=LONG).name == "model-0"
    assert slow.calls == 1


def test_a_load_that_nobody_waits_for_is_begun_anew(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    with in_time("fetching"):
        engine.load(folders[0], timeout=LIMIT)
    until(lambda: not loaders())
    slow.gate.set()
    assert engine.load(folders[0], timeout=LONG).name == "model-0"
    assert slow.calls == 2
    assert [stop.asked.done() for stop in slow.stops] == [True, False]


def test_a_model_is_loaded_once_at_a_time_however_many_gave_up(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    slow.wait = lambda _=None: slow.gate.wait()  # as one inside XLA: it does not look
    found = []
    patient = threading.Thread(target=lambda: found.append(engine.load(folders[0])))
    try:
        for _ in range(3):
            with pytest.raises(DeadlineError):
                engine.load(folders[0], timeout=LIMIT)
        until(lambda: slow.calls)
        assert slow.calls == len(loaders()) == 1
        patient.start()
        until(lambda: [load.waiting for load in engine._loader.loads._coming.values()] == [1])
    finally:
        slow.gate.set()
    patient.join()
    assert [served.name for served in found] == ["model-0"]
    assert slow.calls == 1, "it goes on for whoever has come since"


def test_who_joins_a_load_that_was_given_up_and_ends_has_it_begun_anew(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()

    def fails_first(source, stop):
        if slow.calls:
            slow.gate.set()
            slow.opening(source, stop)
            return
        slow.calls += 1
        slow.gate.wait()
        raise ConnectionError("its connection was closed, as it was to stop")

    engine._loader._files = FilesAround(opening=fails_first)
    with pytest.raises(DeadlineError):
        engine.load(folders[0], timeout=LIMIT)
    until(lambda: slow.calls)
    found = []
    patient = threading.Thread(target=lambda: found.append(engine.load(folders[0])))
    patient.start()
    until(lambda: [load.waiting for load in engine._loader.loads._coming.values()] == [1])
    slow.gate.set()
    patient.join()
    assert [served.name for served in found] == ["model-0"]
    assert slow.calls == 2


@pytest.mark.long
def test_waiting_for_room_is_part_of_it(engine_of, folders):
    probe = engine_of(ladders=SMALL)
    budget = int(need_of(probe, folders[0]) * 1.5)
    engine = engine_of(ladders=SMALL, memory_budget=budget)
    one = engine.load(folders[0])
    with engine.hold(one):
        with in_time("waiting for room.*There was no room for the model .*model-0: .*in use by 1", limit=LONGER):
            engine.load(folders[1], timeout=LONGER)
        until(lambda: not engine._owner.evictor.queue.waits)  # nobody stands in the line
        with in_time("no room"):
            asyncio.run(engine.aload(folders[1], timeout=LIMIT))
    two = engine.load(folders[1], timeout=LONG)
    # One that was evicted comes back in the same way.
    with engine.hold(two):
        with in_time("waiting for room.*There was no room for", limit=LONGER):
            engine.load(folders[0], timeout=LONGER)
        with in_time("no room", limit=LIMIT), engine.hold(one, timeout=LIMIT):
            pass
    assert engine.load(folders[0], timeout=LONG) is one


@contextmanager
def busy(engine):
    """While the owner thread is busy with something else."""
    begun, go_on = threading.Event(), threading.Event()
    engine._owner.post(lambda: begun.set() or go_on.wait(LONG))
    assert begun.wait(LONG)
    try:
        yield
    finally:
        go_on.set()
    settle(engine)


@pytest.mark.long
def test_an_owner_that_is_busy_keeps_nobody(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    with busy(engine):
        with in_time("no room"), engine.hold(served, timeout=LIMIT):
            pass
        engine.keep_alive(served, 100.0)
        with pytest.raises(DeadlineError, match=r"deadline passed .* waiting for its turn"):
            engine.submit(served, [2, 9], Sampling(max_tokens=2), timeout=LIMIT).result()
    assert engine._owner.models.known[served].entry.holds == 0, "nobody has a hold that was given up"
    engine.evict(served)
    settle(engine)
    settle(engine)
    with busy(engine):
        with in_time("loading"):
            engine.load(folders[0], timeout=LIMIT)
        with in_time("no room"), engine.hold(served, timeout=LIMIT):
            pass
    assert engine.load(folders[0], timeout=LONG) is served
    assert engine._owner.models.known[served].entry.holds == 0


def test_a_warm_up_has_a_limit_too(engine_of, folders, monkeypatch):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    with in_time("loading"):
        engine.warmup(folders[0], timeout=LIMIT)
    slow.gate.set()
    served = engine.load(folders[0])
    library, gate = engine._owner.models.runners[served].library, threading.Event()
    monkeypatch.setattr(library, "make", lambda _key: gate.wait(LONG))
    try:
        with in_time(r"compiling\. 0 of \d+ programs are there", limit=LONGER):
            engine.warmup(served, timeout=LONGER)
    finally:
        gate.set()
    settle(engine)


async def test_many_who_wait_take_up_one_thread_and_a_task_that_is_cancelled_is_free_at_once(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    tasks = [asyncio.create_task(engine.aload(folders[0])) for _ in range(40)]
    await asyncio.to_thread(slow.began.wait)
    assert len(loaders()) == 1
    for task in tasks[1:]:
        task.cancel()
    await asyncio.wait(tasks[1:], timeout=LONG)
    assert all(task.cancelled() for task in tasks[1:])
    assert not slow.stops[0].asked.done(), "one still waits"
    tasks[0].cancel()
    await asyncio.wait(tasks[:1], timeout=LONG)
    await asyncio.to_thread(until, slow.stops[0].asked.done)
    await asyncio.to_thread(until, lambda: not loaders())


def test_closing_ends_what_comes(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    errors = []

    def wait():
        try:
            engine.load(folders[0])
        except ClosedError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert slow.began.wait(LONG)
    assert engine.close(LONG)
    thread.join(LONG)
    assert len(errors) == 1
    assert not loaders()


def test_seconds_for_room_limit_nothing_else(engine_of, folders):
    engine = engine_of(ladders=SMALL)
    slow = Slow()
    engine._loader._files = slow.files
    threading.Timer(0.2, slow.gate.set).start()
    assert engine.load(folders[0], timeout=ForRoom(0.01)).name == "model-0"
    assert engine.status(folders[0]).state is State.RESIDENT


def test_a_first_load_that_is_interrupted_while_it_waits_leaves_the_line(fitting, folders, monkeypatch):
    engine = fitting(1)
    one = engine.load(folders[0])

    def interrupted(self, coming, load, plan, until):
        original(self, coming, load, plan, time.monotonic() + 0.05)

    original = ModelLoader._reserve
    monkeypatch.setattr(ModelLoader, "_reserve", interrupted)
    with engine.hold(one), pytest.raises(DeadlineError):
        engine.load(folders[1])
    settle(engine)
    assert [model.name for model in engine.models()] == ["model-0"]
    assert not engine._owner.evictor.queue.waits
