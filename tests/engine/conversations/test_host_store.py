"""Conversations in host memory: they come back without being read again, where that is faster, and never change."""

from __future__ import annotations

import gc
import random

import pytest

from langchain_gemma_jax.engine.api import runner_factory
from langchain_gemma_jax.engine.base.pages import PageTotals, Paging
from langchain_gemma_jax.engine.conversations.host_store import page_names
from langchain_gemma_jax.engine.conversations.transfer_costs import Rate
from langchain_gemma_jax.engine.device import page_door
from langchain_gemma_jax.engine.device.page_door import MappedPages
from langchain_gemma_jax.engine.device.page_pool import page_bytes
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident
from tests.engine.faults_support import SMALL, assert_works, greedy
from tests.engine.residents_support import baseline, folders_in, need_of, on_device, status
from tests.engine.tiny import CONFIGS, CONTEXT, kv_store_of, settle, text
from tests.tiny_gemma import tiny_gemma

SIZES = page_bytes(CONFIGS["local and global"].cache_layout, "float32", 8)
SIZE = SIZES.of(PageTotals(CONTEXT // 8, 2))
TWO = 2 * 32 * SIZES.whole  # the budget with which the pool has 32 pages
ROOM = 50 * SIZE


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return folders_in(tmp_path_factory.mktemp("models"))


class Always(Rate):
    """A rate that no measurement changes."""

    def __init__(self, seconds):
        super().__init__()
        super().add(seconds, 1)

    def add(self, seconds, amount):
        pass


def reading_is(seconds, engine):
    """Reading a token takes so long, as far as the engine knows."""
    for known in engine._owner.models.known.values():
        known.host_store.read = Always(seconds)


@pytest.fixture
def pressed(engine_of, tiny_model):
    """An engine where two conversations fit the device, and many the host."""
    engine = engine_of(ladders=SMALL, kv_bytes=TWO, max_snapshots=1, host_kv_bytes=ROOM)
    served = engine.serve(tiny_model)
    reading_is(100.0, engine)
    return engine, served


def talk(engine, served, conversations, cold, rng, turns=3):
    """Conversations in turns, one after the other: each goes on where it was. Gives the reused tokens of each turn."""
    reused = []
    for turn in range(turns):
        for number, history in enumerate(conversations):
            before = len(history)
            history.extend(text(rng, 7))
            done = engine.submit(served, history, greedy(4), system=20).result()
            cold.expect(history, done, f"turn {turn} of {number}")
            reused.append((before, done.reused_tokens))
            history.extend(done.ids)
    return reused


def test_more_conversations_than_fit_the_device_go_on_where_they_were(pressed, cold, rng):
    engine, served = pressed
    conversations = [text(rng, 60) for _ in range(5)]
    reused = talk(engine, served, conversations, cold, rng)
    # All that they had but the newest token, which is read anyway.
    assert all(got >= had - 1 for had, got in reused[5:])
    report = engine.report()
    assert report.restored >= 8
    assert report.restored_tokens > 500
    assert 0 < report.host_kv_bytes <= ROOM
    assert any(each.what == "conversations to host memory" for each in report.eviction_log)


def test_they_are_dropped_where_reading_is_faster(pressed, cold, rng):
    engine, served = pressed
    reading_is(1e-12, engine)
    reused = talk(engine, served, [text(rng, 60) for _ in range(5)], cold, rng, turns=2)
    assert engine.report().parked <= 1, "the first one, when moving had never been measured"
    assert engine.report().restored <= 1
    assert all(got < had - 1 for had, got in reused[6:])


def test_what_is_there_is_not_fetched_where_reading_is_faster_by_now(pressed, cold, rng):
    engine, served = pressed
    conversations = [text(rng, 60) for _ in range(4)]
    talk(engine, served, conversations, cold, rng, turns=1)
    assert engine.report().parked > 0
    reading_is(1e-12, engine)
    engine._owner.models.known[served].host_store._costs.to_device.add(1.0, 1)
    talk(engine, served, conversations, cold, rng, turns=1)
    assert engine.report().restored == 0


def test_no_host_memory_is_used_where_none_is_allowed(engine_of, tiny_model, cold, rng):
    engine = engine_of(ladders=SMALL, kv_bytes=TWO, host_kv_bytes=0)
    served = engine.serve(tiny_model)
    reading_is(100.0, engine)
    talk(engine, served, [text(rng, 60) for _ in range(4)], cold, rng, turns=2)
    assert (engine.report().parked, engine.report().host_kv_bytes) == (0, 0)


def test_host_memory_has_a_bound_too(engine_of, tiny_model, cold, rng):
    allowed = 3 * SIZE
    engine = engine_of(ladders=SMALL, kv_bytes=TWO, max_snapshots=0, host_kv_bytes=allowed)
    served = engine.serve(tiny_model)
    reading_is(100.0, engine)
    conversations = [text(rng, 60) for _ in range(8)]
    for _ in range(2):
        talk(engine, served, conversations, cold, rng, turns=1)
        settle(engine)
        assert 0 < engine.report().host_kv_bytes <= allowed


def test_scopes_never_meet_on_the_host_either(pressed, cold, rng):
    engine, served = pressed
    prompt = text(rng, 60)
    engine.submit(served, prompt, greedy(2), scope="a").result()
    for _ in range(4):
        engine.submit(served, text(rng, 60), greedy(2), scope="filling").result()
    assert engine.report().parked > 0
    for scope, reused in (("b", 0), ("", 0), ("a", 59)):
        done = engine.submit(served, prompt, greedy(2), scope=scope).result()
        cold.expect(prompt, done, scope)
        assert done.reused_tokens == reused


def test_a_host_that_refuses_costs_a_second_reading_and_nothing_else(pressed, cold, rng, monkeypatch, caplog):
    engine, served = pressed

    def refuse(*_, **__):
        raise MemoryError("no memory is left")

    monkeypatch.setattr(MappedPages, "read", refuse)
    talk(engine, served, [text(rng, 60) for _ in range(4)], cold, rng, turns=2)
    assert engine.report().parked == 0
    assert "could not be kept on the host: MemoryError" in caplog.text


@pytest.mark.parametrize("kind", ["mapped", pytest.param("programs", marks=pytest.mark.long)])
def test_a_conversation_outlives_its_models_eviction(engine_of, folders, rng, monkeypatch, kind):
    for module in (page_door, runner_factory) if kind == "programs" else ():
        monkeypatch.setattr(module, "is_mapped", lambda _: False)
    need = need_of(engine_of(ladders=SMALL), folders[0])
    engine = engine_of(ladders=SMALL, memory_budget=need + need // 2, host_kv_bytes=ROOM)
    start = baseline()
    one, two = (engine.load(folder) for folder in folders[:2])
    reading_is(100.0, engine)
    plain = engine_of(ladders=SMALL)
    alone = plain.load(folders[0])
    history = text(rng, 60)
    for turn in range(3):
        history += text(rng, 5)
        wanted = plain.submit(alone, history, greedy(5), scope=str(turn)).result()
        done = engine.submit(one, history, greedy(5)).result()
        assert done.ids == wanted.ids
        assert done.reused_tokens == (0 if turn == 0 else len(history) - 6)
        history += done.ids
        assert_works(engine, two)  # which evicts the first
        assert not status(engine, one).resident
        assert status(engine, one).host_kv > 0
    plain.unload(alone)
    engine.unload(one)
    engine.unload(two)
    assert status_of_nothing(engine) == (0, ())
    gc.collect()
    assert on_device() == start


def status_of_nothing(engine):
    settle(engine)
    return engine.report().host_kv_bytes, engine.models()


def test_other_weights_do_not_go_on_from_what_these_had_read(engine_of, folders, tmp_path, rng):
    folder = tmp_path / "changing"
    folder.mkdir()
    for name, content in tiny_gemma(seed=0).items():
        (folder / name).write_bytes(content)
    need = need_of(engine_of(ladders=SMALL), folders[0])
    engine = engine_of(ladders=SMALL, memory_budget=need + need // 2, host_kv_bytes=ROOM)
    one, two = engine.load(folder), engine.load(folders[1])
    reading_is(100.0, engine)
    prompt = text(rng, 60)
    engine.submit(one, prompt, greedy(5)).result()
    assert_works(engine, two)
    assert status(engine, one).host_kv > 0
    for name, content in tiny_gemma(seed=2).items():
        (folder / name).write_bytes(content)
    done = engine.submit(one, prompt, greedy(5)).result()
    assert done.reused_tokens == 0
    plain = engine_of(ladders=SMALL)
    assert done.ids == plain.submit(plain.load(folders[2]), prompt, greedy(5)).result().ids


def test_the_rate_of_reading_is_measured(engine_of, tiny_model, rng):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    read = engine._owner.models.known[served].host_store.read
    engine.submit(served, text(rng, 10), greedy(2), scope="short").result()
    assert read.seconds(1) is None
    engine.submit(served, text(rng, 60), greedy(2), scope="long").result()
    settle(engine)
    assert 0 < read.seconds(1) < 10
    assert kv_store_of(engine).host_store.read is read


def test_what_several_begin_with_is_there_once(pressed, cold, rng):
    engine, served = pressed
    system = text(rng, 64)
    for _ in range(14):
        prompt = [*system, *text(rng, 20)]
        cold.expect(prompt, engine.submit(served, prompt, greedy(2), system=64).result())
    settle(engine)
    report = engine.report()
    assert report.parked >= 2
    assert report.host_kv_bytes <= SIZES.of(PageTotals(8 + 4 * report.parked, 6 * report.parked))


def test_a_page_has_a_name_of_all_that_was_said_up_to_its_end_and_of_who_said_it():
    def names(ids, scope=""):
        return page_names(Resident(scope, 8, token_keys(ids)), Paging(8, None))

    plain = names(range(20))
    assert len(set(plain)) == 3
    assert names([*range(19), 7])[:2] == plain[:2]
    for other in (names([7, *range(1, 20)]), names(range(20), "a")):
        assert not set(plain) & set(other)
    assert names(range(16)) == plain[:2]
    assert names(range(20), "\ud800") != names(range(20), "\ud801")


@pytest.mark.long
def test_random_turns_under_pressure_are_those_of_a_cold_run(engine_of, tiny_model, cold, rng):
    """Conversations begin alike, branch, leave for the host and come back, while others make room for themselves."""
    for seed in range(3):
        engine = engine_of(
            ladders=SMALL, kv_bytes=TWO, max_snapshots=1, host_kv_bytes=random.Random(seed).choice((0, 4 * SIZE, ROOM))
        )
        served = engine.serve(tiny_model)
        reading_is(100.0, engine)
        system = text(rng, 30)
        histories = [[*system, *text(rng, 5)] for _ in range(4)]
        for _ in range(25):
            some = rng.sample(range(4), rng.randint(1, 3))
            asked = []
            for number in some:
                cut = rng.choice([len(histories[number])] * 3 + [rng.randint(30, len(histories[number]))])
                histories[number] = [*histories[number][:cut], *text(rng, rng.randint(1, 12))]
                if len(histories[number]) > CONTEXT - 10:
                    histories[number] = [*system, *text(rng, 3)]
                asked.append(engine.submit(served, histories[number], greedy(4), system=30, scope=rng.choice("aaab")))
            for number, each in zip(some, asked, strict=True):
                done = each.result()
                cold.expect(histories[number], done, f"seed {seed}")
                histories[number] += done.ids
        settle(engine)
        held = kv_store_of(engine).held
        assert held.nbytes() == held.index.nbytes() <= TWO
