"""Models come and go: what fits is there, what is in use stays, and who was evicted comes back by itself."""

from __future__ import annotations

import dataclasses
import threading
import time
import weakref
from contextlib import ExitStack

import jax
import pytest

from langchain_gemma_jax.engine.api.model_estimate import first_workspace, weights_bytes
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.errors import (
    CancelledRequestError,
    ClosedError,
    DeadlineError,
    DeviceMemoryError,
    DevicesError,
    InputError,
)
from langchain_gemma_jax.models.loading import place
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from tests.engine.faults_support import SMALL, assert_works, greedy, in_threads, outcome, resource_exhausted, slowed
from tests.engine.model_files import FilesAround
from tests.engine.residents_support import PROMPT, baseline, constants, is_there, on_device, status
from tests.engine.tiny import settle
from tests.waiting import LONG

# Predicted, and what is there.


@pytest.mark.long
def test_what_is_predicted_is_what_is_there(engine_of, folders):
    before, engine = baseline(), engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    found = status(engine, served)
    assert found.weights == served.model.nbytes
    assert on_device() - before == found.weights + constants(engine)
    engine.submit(served, PROMPT, greedy(4)).result()
    found = status(engine, served)
    assert found.kv == engine.report().kv_bytes > 0
    arrays = engine._owner.models.runners[served].kv_store.held.arrays  # XLA attends here, so the whole pool is there
    pool = sum(leaf.nbytes for leaf in jax.tree.leaves(arrays.pool))
    assert on_device() - before == found.weights + pool + constants(engine)
    assert found.workspace >= engine._owner.models.runners[served].library.workspace > 0
    engine.unload(served)
    assert on_device() == before


def test_the_first_bytes_are_read_when_the_bytes_are_reserved(fitting, folders, monkeypatch):
    engine, seen = fitting(2), []

    def watched(plan):
        seen.append((engine._owner.evictor.ledger.used(plan.placement), on_device()))

    engine._loader._files = FilesAround(reading=watched)
    before = baseline()
    served = engine.load(folders[0])
    entry, known = engine._owner.models.known[served].entry, engine._owner.models.known[served]
    assert entry.weights == weights_bytes(known.shape, served.model.placement)
    predicted = entry.weights + entry.floor + first_workspace(known.shape, known.ladders)
    assert seen == [(predicted, before)]


# Evicted.


@pytest.mark.parametrize("way", ["evict", "unload"])
def test_the_hosts_own_memory_is_given_back_at_once(engine_of, folders, monkeypatch, way):
    """On the CPU the weights are numpy's memory, which JAX holds until garbage is collected."""
    aligned, rooms = place._aligned, []

    def watched(size):
        room = aligned(size)
        rooms.append(weakref.ref(room.base))
        return room

    monkeypatch.setattr(place, "_aligned", watched)
    engine = engine_of(ladders=SMALL)
    served = engine.load(folders[0])
    assert any(room() is not None for room in rooms)
    getattr(engine, way)(served)
    settle(engine)
    settle(engine)
    assert all(room() is None for room in rooms)


@pytest.mark.long
def test_one_that_was_evicted_comes_back_when_somebody_asks_and_says_the_same(fitting, folders, alone):
    engine = fitting(1)
    models = [engine.load(folder) for folder in folders]
    for _ in range(3):
        for served, ids in zip(models, alone, strict=True):
            assert engine.submit(served, PROMPT, greedy(6), timeout=LONG).result().ids == ids
            assert sum(is_there(engine, each) for each in models) == 1
    assert engine.load(folders[0]) is models[0]
    assert is_there(engine, models[0]), "load() gives what is in memory"
    assert engine.report().loads >= 10


@pytest.mark.long
def test_requests_for_two_models_at_once_where_one_fits_all_get_their_answers(fitting, folders, alone):
    engine = fitting(1)
    models = [engine.load(folder) for folder in folders]

    def ask(index):
        which = index % 3
        return which, engine.submit(models[which], PROMPT, greedy(6), scope=str(index), timeout=LONG).result().ids

    for which, ids in in_threads(12, ask):
        assert ids == alone[which]
    # The last answer is there before the owner thread has looked at what its programs took.
    budget = engine._owner.evictor.ledger.budget(models[0].model.placement)
    settle(engine)
    assert sum(each.nbytes for each in engine.models()) <= budget


# In use.


@pytest.mark.long
def test_a_hold_keeps_it_and_a_caller_hears_in_time_who_holds_what(fitting, folders):
    engine = fitting(1)
    one = engine.load(folders[0])
    with engine.hold(one):
        assert status(engine, one).leases == 1
        engine.evict(one)
        settle(engine)
        assert is_there(engine, one), "later"
        with pytest.raises(DeadlineError, match=r"model-1.*model-0: .* weights.*in use by 1"):
            engine.load(folders[1], timeout=0.2)
        assert_works(engine, one)
    settle(engine)
    settle(engine)
    assert not is_there(engine, one), "now"
    assert engine.report().eviction_log[-1].reason == "asked to go"
    assert_works(engine, engine.load(folders[1]))


def test_a_request_waits_for_a_model_no_longer_than_its_deadline(fitting, folders):
    engine = fitting(1)
    one, two = (engine.load(folder) for folder in folders[:2])
    with engine.hold(one):
        late, given_up = engine.submit(two, PROMPT, greedy(2), timeout=0.2), engine.submit(two, PROMPT, greedy(2))
        assert isinstance(outcome(late), DeadlineError)
        given_up.cancel()
        assert isinstance(outcome(given_up), CancelledRequestError)
        settle(engine)
        assert_works(engine, one)
    settle(engine)
    assert is_there(engine, one), "nobody waits any more, so nobody goes"


@pytest.mark.long
def test_a_stream_of_requests_for_one_model_does_not_keep_another_out(fitting, folders):
    engine = fitting(1)
    one, two = (engine.load(folder) for folder in folders[:2])
    stop = threading.Event()

    def talk(_index):
        while not stop.is_set():
            engine.submit(one, PROMPT, greedy(30), timeout=LONG).result()

    threads = [threading.Thread(target=talk, args=(index,), daemon=True) for index in range(3)]
    for thread in threads:
        thread.start()
    with slowed(0.01):  # so that one of them runs at any time
        try:
            for _ in range(2):
                assert len(engine.submit(two, PROMPT, greedy(2), timeout=LONG).result().ids) == 2
        finally:
            stop.set()
            for thread in threads:
                thread.join(LONG)


# Pinned, for a time, unloaded.


def test_a_request_for_one_that_cannot_come_is_told(fitting, folders):
    engine = fitting(1)
    one, two = (engine.load(folder) for folder in folders[:2])
    engine.pin(one)
    with pytest.raises(DeviceMemoryError, match="pinned"):
        engine.submit(two, PROMPT, greedy(2)).result()
    assert_works(engine, one)


def test_what_is_too_large_alone_is_refused_before_a_byte_is_read(engine_of, folders):
    engine, before = engine_of(ladders=SMALL, memory_budget=10_000), baseline()
    with pytest.raises(DeviceMemoryError, match="no model is there") as caught:
        engine.load(folders[0])
    assert caught.value.holders == ()
    assert on_device() == before
    assert engine.models() == ()


def test_a_model_of_the_callers_that_is_too_much_is_refused(engine_of, tiny_model):
    engine = engine_of(ladders=SMALL, memory_budget=tiny_model.nbytes)
    with pytest.raises(DeviceMemoryError, match="needs"):
        engine.serve(tiny_model)
    assert engine.models() == ()


# Conversations and models share the memory.


def beside_each_other(engine, folder, count):
    """A model in a budget that fits so many conversations and no more, their prompts, and what they say alone."""
    prompts = [list(range(10 + number, 20 + number)) for number in range(count)]
    served = engine.load(folder)
    alone = [
        engine.submit(served, prompt, greedy(20), scope=str(number)).result().ids
        for number, prompt in enumerate(prompts)
    ]
    settle(engine)
    entry = engine._owner.models.known[served].entry
    engine.reconfigure(engine.settings.replace(memory_budget=entry.weights + entry.workspace + count * entry.floor))
    return served, prompts, alone


@pytest.mark.long
@pytest.mark.parametrize(("rows", "count"), [((1, 4), 2), ((1, 2, 4), 3)])
def test_rows_that_nobody_needs_take_no_more_than_there_is(engine_of, folders, rows, count):
    engine = engine_of(ladders=dataclasses.replace(SMALL, rows=rows))
    served, prompts, alone = beside_each_other(engine, folders[0], count)
    entry, owner = engine._owner.models.known[served].entry, engine._owner
    turn, seen, used = owner.evictor.round, [], []

    def watched():
        seen.append(len(owner.scheduler.running))
        used.append(owner.evictor.ledger.used(entry.home) - entry.workspace)  # a program of more rows may need more
        turn()

    owner.evictor.round = watched
    asked = [
        engine.submit(served, prompt, greedy(20), scope=f"{number} again") for number, prompt in enumerate(prompts)
    ]
    assert [each.result().ids for each in asked] == alone
    settle(engine)
    assert max(seen) == count, "they ran beside each other"
    assert max(used) <= entry.weights + count * entry.floor


@pytest.mark.long
def test_a_step_that_fails_ends_those_that_it_was_for_and_not_those_that_were_put_off(engine_of, folders):
    engine = engine_of(ladders=dataclasses.replace(SMALL, rows=(1, 2, 4)))
    served, prompts, alone = beside_each_other(engine, folders[0], 3)
    runner, scheduler = engine._owner.models.runners[served], engine._owner.scheduler
    step, split, put_off, failed = runner.step, scheduler.split, [], []

    def seen(requests):
        put_off.extend(requests)
        split(requests)

    def fail_once(requests, rows):
        if put_off and not failed:
            failed.extend(requests)
            raise DeviceMemoryError("this step is too much")
        return step(requests, rows)

    scheduler.split, runner.step = seen, fail_once
    runner.together = lambda requests, _: (min(len(requests), 2), 2)  # as where the larger step is being compiled
    asked = [
        engine.submit(served, prompt, greedy(20), scope=f"{number} again") for number, prompt in enumerate(prompts)
    ]
    answers = [outcome(each) for each in asked]
    assert len(failed) == 2
    assert sum(isinstance(answer, DeviceMemoryError) for answer in answers) == 2
    assert sum(getattr(answer, "ids", None) == ids for answer, ids in zip(answers, alone, strict=True)) == 1


# What goes wrong.


class Refusing:
    """A loader that finds the memory full a few times."""

    def __init__(self, times, error=resource_exhausted):
        self.times, self.calls, self.error = times, 0, error

    def __call__(self, _):
        self.calls += 1
        if self.calls <= self.times:
            raise self.error()


@pytest.mark.parametrize("error", [resource_exhausted, MemoryError])
def test_when_memory_is_full_against_all_reckoning_what_is_idle_goes_and_it_is_tried_once_more(
    engine_of, folders, error
):
    engine = engine_of(ladders=SMALL)
    idle, held = engine.load(folders[0]), engine.load(folders[1])
    loader = Refusing(1, error)
    engine._loader._files = FilesAround(reading=loader)
    with engine.hold(held):
        served = engine.load(folders[2])
        assert loader.calls == 2
        assert (is_there(engine, idle), is_there(engine, held)) == (False, True)
    assert engine.report().eviction_log[-1].reason == "the device's memory was full"
    assert_works(engine, served)


def test_when_it_stays_full_the_error_lists_who_holds_what(engine_of, folders):
    before, engine = baseline(), engine_of(ladders=SMALL)
    held = engine.load(folders[1])
    loader = Refusing(2)
    engine._loader._files = FilesAround(reading=loader)
    with engine.hold(held), pytest.raises(DeviceMemoryError, match=r"full twice.*model-1: .*in use by 1") as caught:
        engine.load(folders[2])
    assert loader.calls == 2
    assert caught.value.holders[0].startswith("model-1: ")
    assert isinstance(caught.value.__cause__, jax.errors.JaxRuntimeError)
    engine._loader._files = ModelFiles()
    assert_works(engine, engine.load(folders[2]))
    for served in list(engine._owner.models.known):
        engine.unload(served)
    assert on_device() == before


def test_who_comes_back_to_a_full_memory_is_told_and_the_next_one_is_served(fitting, folders):
    engine = fitting(1)
    one, _ = (engine.load(folder) for folder in folders[:2])
    refusing, all_asked = Refusing(2), threading.Event()
    engine._loader._files = FilesAround(reading=lambda plan: all_asked.wait(300) and refusing(plan))
    asked = [engine.submit(one, PROMPT, greedy(2)) for _ in range(3)]
    all_asked.set()
    errors = [outcome(each) for each in asked]
    assert {type(error) for error in errors} == {DeviceMemoryError}
    assert len({id(error) for error in errors}) == 3
    assert status(engine, one).state is State.ABSENT
    assert_works(engine, one)


def test_closing_the_engine_tells_those_who_wait(fitting, folders):
    engine = fitting(1)
    one, two = (engine.load(folder) for folder in folders[:2])
    errors = []

    def wait(call):
        try:
            call()
        except ClosedError as error:
            errors.append(error)

    calls = [
        lambda: engine.load(folders[2]),
        lambda: engine.load(folders[0]),
        lambda: engine.submit(one, PROMPT).result(),
    ]
    with ExitStack() as stack:
        stack.enter_context(engine.hold(two))
        threads = [threading.Thread(target=wait, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        assert engine.close(LONG)
        for thread in threads:
            thread.join(LONG)
    assert len(errors) == 3


def test_a_model_that_is_loaded_again_when_the_engine_closes_is_freed(fitting, folders):
    engine, before = fitting(1), baseline()
    one, _two = (engine.load(folder) for folder in folders[:2])
    began = threading.Event()

    def slowly(_):
        began.set()
        time.sleep(0.2)

    engine._loader._files = FilesAround(done=slowly)
    generation = engine.submit(one, PROMPT)
    began.wait(LONG)
    assert engine.close(LONG)
    assert isinstance(outcome(generation), ClosedError)
    assert on_device() == before


def test_a_model_is_on_as_many_devices_as_a_call_or_the_settings_say(engine_of, folders):
    with pytest.raises(DevicesError, match=r"devices=4 .*, and this process has 1 cpu. What works here: devices=1\."):
        engine_of().load(folders[0], devices=4)
    engine = engine_of(devices=4)
    with pytest.raises(DevicesError, match="devices=4 was asked for") as caught:
        engine.load(folders[0])
    assert caught.value.working == (1,)
    served = engine.load(folders[0], devices=1)
    assert engine.status(folders[0], devices=1).chosen == ""
    auto = engine.load(folders[1], devices="auto")
    assert 'on 1 device (devices="auto"), each ' in str(engine.status(folders[1], devices="auto"))
    assert engine.status(folders[1], devices=1) is None
    engine.unload(auto)
    engine.unload(served)
    with pytest.raises(DevicesError, match=r"fits on none of .*: 1 device would need .* each, of 0.1 MB"):
        engine_of(memory_budget=10**5, devices="auto").load(folders[0])


def test_a_model_has_as_many_replicas_as_a_call_or_the_settings_say(engine_of, folders):
    engine = engine_of(replicas=9)
    with pytest.raises(DevicesError, match=r"replicas=9 .* need 9 devices, and this process has 1"):
        engine.load(folders[0])
    engine.unload(engine.load(folders[0], replicas=1))
    engine.unload(engine.load(folders[0], replicas="auto"))


@pytest.mark.parametrize("wrong", [0, True, "all", 1.0])
def test_settings_refuse_what_is_no_number_of_devices(engine_of, wrong):
    with pytest.raises(InputError, match=r'devices: expected a whole number from 1, "auto" or None'):
        engine_of(devices=wrong)
