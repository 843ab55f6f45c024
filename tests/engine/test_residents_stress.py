"""Models come and go many times, from many threads: nothing leaks, nothing freed is used, it is never too much."""

from __future__ import annotations

import gc
import random
import threading
from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.models.seams.weights import total_bytes
from tests.engine.faults_support import SMALL, assert_works, greedy, in_threads
from tests.engine.model_files import FilesAround
from tests.engine.residents_support import baseline, need_of, on_device
from tests.engine.tiny import settle

PROMPT = list(range(10, 40))
MEGABYTE = 1 << 20


@pytest.fixture
def need(engine_of, folders):
    engine = engine_of(loads_per_minute=10_000, ladders=SMALL)
    served = engine.load(folders[0])
    assert_works(engine, served)
    settle(engine)
    need = engine._owner.models.known[served].entry.need
    engine.unload(served)
    return max(need, need_of(engine, folders[0]))


def host_bytes():
    """The process's own memory, without what it shares with files."""
    gc.collect()
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["RssAnon"].split()[0]) * 1024


def slope(samples):
    """Bytes a cycle: the least squares line through (cycle, bytes)."""
    cycles, held = (np.array(each, float) for each in zip(*samples, strict=True))
    return float(np.polyfit(cycles, held, 1)[0])


def come_and_go(engine, folders, cycles, every):
    """Load one model after the other where one fits, and ask each. Gives samples of the host's memory."""
    models = [engine.load(folder) for folder in folders]
    for served in models:
        assert_works(engine, served)
    for served in models:
        engine.evict(served)
        settle(engine)
    settle(engine)
    before, samples = baseline(), []
    for cycle in range(cycles):
        served = models[cycle % 3]
        assert_works(engine, served)
        assert sum(not each.model.closed for each in models) == 1
        engine.evict(served)
        settle(engine)
        settle(engine)
        assert served.model.closed
        assert on_device() == before, f"cycle {cycle}"
        if cycle % every == 0:
            samples.append((cycle, host_bytes()))
    assert engine.report().loads >= cycles
    return samples


@pytest.mark.long
def test_thirty_cycles_of_three_models_leave_no_byte(engine_of, folders, need):
    come_and_go(engine_of(loads_per_minute=10_000, ladders=SMALL, memory_budget=need + need // 2), folders, 30, 10)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_hundred_cycles_of_three_models_leave_no_byte_and_no_megabyte(
    engine_of, folders, need, monkeypatch, tmp_path
):
    store = Store(tmp_path / "programs")

    def library_of(programs, tally, name, background):
        return Library(programs, store, tally, name=name, background=background)

    monkeypatch.setattr(libraries, "library_of", library_of)
    engine = engine_of(loads_per_minute=10_000, ladders=SMALL, memory_budget=need + need // 2)
    samples = come_and_go(engine, folders, 500, 10)
    settled = [sample for sample in samples if sample[0] >= 100]
    print(f"host memory: {slope(settled) * 100 / MEGABYTE:+.2f} MB in 100 cycles")  # noqa: T201
    assert engine.report().cache_hits > 1000, "programs were dropped, and fetched again"
    assert slope(settled) * 100 < MEGABYTE


def turned(engine):
    """Wait until the owner thread has done what was asked of it."""
    for _ in range(2):
        engine._owner.call(lambda: None)


class Watch:
    """The books after every turn, and the device whenever weights were read."""

    def __init__(self, engine, served):
        self.most, self.turns, self.wrong = 0, 0, []
        self.engine, self.served = engine, served
        self.home, keeper = served[0].model.placement, engine._owner.evictor
        self.turn = keeper.round
        keeper.round = self.look
        engine._loader._files = FilesAround(done=self.load)

    def look(self):
        self.turn()
        used = self.engine._owner.evictor.ledger.used(self.home)
        self.turns, self.most = self.turns + 1, max(self.most, used)

    def load(self, params):
        there = sum(each.model.nbytes for each in self.served if not each.model.closed) + total_bytes(params)
        if there > self.engine._owner.evictor.ledger.budget(self.home):
            self.wrong.append(there)


def acquire_evict_release(engine, models, threads, times, expiries, asks):
    """Threads that hold, use, evict, let go; and ask, in such a share of the times. Gives what was watched."""
    scales = []
    for served in models:
        with engine.hold(served):
            scales.append(np.array(served.model.params["final_norm"]))
    answers = [engine.submit(served, PROMPT, greedy(3)).result().ids for served in models]
    watch, counting = Watch(engine, models), threading.Lock()
    left = [expiries]

    def work(thread):
        rng = random.Random(thread)
        for _ in range(times):
            which = rng.randrange(3)
            served, due = models[which], False
            with engine.hold(served, timeout=120):
                # Raises if it was freed; and its weights are its own.
                assert np.array_equal(np.asarray(served.model.params["final_norm"]), scales[which])
                if rng.random() < 0.05:
                    engine.evict(served)
                    turned(engine)
                    assert not served.model.closed, "not while it is held"
                if rng.random() < 2 * expiries / (threads * times):
                    with counting:
                        left[0] -= 1
                        due = left[0] >= 0
                    if due:
                        engine.keep_alive(served, 0.0)
                        turned(engine)
                        assert not served.model.closed, "its time is up, and it is in use"
            if due:
                turned(engine)
                engine.keep_alive(served, None)
            if rng.random() < asks:
                assert engine.submit(served, PROMPT, greedy(3), timeout=120).result().ids == answers[which]

    results = in_threads(threads, work)
    assert results == [None] * threads, next(error for error in results if error is not None)
    assert left[0] <= 0, "so many expiries were forced"
    return watch


def stressed(engine_of, folders, need, threads, times, expiries, asks=0.01):
    engine, before = engine_of(loads_per_minute=10_000, ladders=SMALL, memory_budget=2 * need + need // 2), baseline()
    models = [engine.load(folder) for folder in folders]
    watch = acquire_evict_release(engine, models, threads, times, expiries, asks)
    assert watch.turns > times, "one turn may serve several threads"
    assert 0 < watch.most <= engine.settings.memory_budget
    assert watch.wrong == []
    settle(engine)
    assert all(status.leases == 0 for status in engine.models())
    report = engine.report()
    for served in models:
        engine.unload(served)
    assert on_device() == before
    return report


@pytest.mark.long
def test_threads_that_acquire_evict_and_release(engine_of, folders, need):
    report = stressed(engine_of, folders, need, threads=4, times=40, expiries=10)
    assert report.models_evicted > 10


@pytest.mark.long
def test_threads_that_ask_at_the_same_time_take_no_more_than_there_is(engine_of, folders, need):
    stressed(engine_of, folders, need, threads=8, times=25, expiries=10, asks=0.5)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_eight_threads_that_acquire_evict_and_release_two_thousand_times(engine_of, folders, need):
    report = stressed(engine_of, folders, need, threads=8, times=2000, expiries=200)
    print(f"{report.loads} loads, {report.models_evicted} evictions")  # noqa: T201
    assert report.models_evicted > 500
