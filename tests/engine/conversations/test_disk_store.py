"""Conversations that outlive their process: they come back from the disk, and never change an answer."""

from __future__ import annotations

import random
import shutil
import threading
from dataclasses import replace

import jax
import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.draft_sources import SUFFIXES
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.conversations import disk_arrays, disk_store
from langchain_gemma_jax.engine.device.page_door import MappedPages
from langchain_gemma_jax.engine.device.page_pool import page_bytes
from langchain_gemma_jax.engine.drafting import model_drafts
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import StoredPrefixes
from langchain_gemma_jax.errors import CancelledRequestError, DeadlineError, InputError
from langchain_gemma_jax.models.recipes import Recipe
from tests.engine.conversations.test_host_store import reading_is
from tests.engine.faults_support import SMALL, assert_works, copied, greedy, resource_exhausted
from tests.engine.model_files import FilesOf
from tests.engine.tiny import CONFIGS, CONTEXT, kv_store_of, settle, text
from tests.tiny_gemma import tiny_gemma
from tests.waiting import until

SYSTEM = 60
PAGE_BYTES = page_bytes(CONFIGS["local and global"].cache_layout, "float32", 8).whole


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The folder of prefixes, in a cache of this test's own; conversations of any length are worth it, and at once."""
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_store, "WORTH_IT", 16)
    monkeypatch.setattr(disk_arrays, "BLOCK", 16)
    monkeypatch.setattr(disk_store, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(disk_store, "LOOK_SECONDS", 0.001)
    return tmp_path / "cache" / "prefixes"


@pytest.fixture
def folder(tmp_path):
    return model_in(tmp_path / "model")


def model_in(folder, seed=0):
    folder.mkdir(exist_ok=True)
    for name, content in tiny_gemma(seed=seed).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def started(engine_of, folder):
    """``started()``: an engine with the store, and the model; each is a process of its own to the disk."""

    def start(source=folder, how=None, seconds=100.0, **settings):
        engine = engine_of(**({"ladders": SMALL, "prefix_store": "1GB"} | settings))
        served = engine.load(source, **(how or {}))
        reading_is(seconds, engine)
        known(engine)
        return engine, served

    return start


def known(engine):
    """Wait until it is known what the disk has."""
    for runner in engine._owner.models.runners.values():
        if (disk := runner.kv_store.disk_store) is not None:
            until(lambda: disk._there_is.prefixes is not None)


def quiet(engine, files):
    """Wait until so many prefixes were written, and no more are."""
    until(lambda: engine.report().prefixes_written >= files)
    store = engine._loader.prefixes
    until(lambda: store.idle and not disk_of(engine)._idle_since)
    assert engine.report().prefixes_written == files


def disk_of(engine):
    return kv_store_of(engine).disk_store


def a_model(folder, model):
    """Files in a folder that hold this model."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(model.name)
    return FilesOf(model, lambda: copied(model))


def bfloat16(model):
    half = jax.tree.map(lambda array: array.astype("bfloat16") if array.ndim > 1 else array, model.params)
    return replace(model, params=half, recipe=Recipe("bfloat16"), name=f"{model.name}, half")


def of_a_token(held):
    """The first key of a conversation's token, as bytes."""
    (page,), _ = held.read(held.index.residents[0], [0], [])
    return page[0][0, 5].tobytes()


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "local and global",
        "all global",
        "shared KV",
        "rounded",
        "a wide window",
        "local and global, half",
        "shared KV, half",
    ],
)
def test_a_restarted_engine_goes_on_where_the_last_one_was(
    engine_of, model_of, place, tmp_path, rng, name, monkeypatch
):
    model = model_of(name.removesuffix(", half"))
    load = a_model(tmp_path / "model", bfloat16(model) if name.endswith("half") else model)
    history = text(rng, SYSTEM + 17)

    def process(**settings):
        engine = engine_of(ladders=SMALL, **settings)
        engine._loader._files = load
        served = engine.load(str(tmp_path / "model"))
        reading_is(100.0, engine)
        known(engine)
        return engine, served

    cold, plain = process()
    wanted, turns = [], [history]
    for turn in range(3):
        done = cold.submit(plain, turns[-1], greedy(9), system=SYSTEM).result()
        wanted.append(done.ids)
        turns.append([*turns[-1], *done.ids, *text(rng, 7 + turn)])

    first, served = process(prefix_store="1GB")
    assert first.submit(served, turns[0], greedy(9), system=SYSTEM).result().ids == wanted[0]
    quiet(first, 2)
    assert first.close(30)
    for turn, tokens in enumerate(turns[:3]):
        engine, served = process(prefix_store="1GB")
        done = engine.submit(served, tokens, greedy(9), system=SYSTEM).result()
        assert done.ids == wanted[turn]
        whole = len(turns[turn - 1]) + 8  # all of the turn before but its newest token
        assert done.reused_tokens == (whole if turn else 64 if name == "all global" else SYSTEM)
        report = engine.report()
        assert (report.prefixes_read, report.prefix_tokens_read) == (1, done.reused_tokens)
        assert report.prefixes_rejected == 0
        until(lambda: engine.report().prefixes_written >= (turn > 0))  # noqa: B023
        assert engine.close(30)


@pytest.mark.long
def test_packed_weights_and_other_dtypes_keep_their_prefixes_apart(started, place, rng):
    prompt = text(rng, SYSTEM + 20)
    packed = {"weights": "int8"}
    ways = (
        {},
        {"dtype": "bfloat16"},
        {"cache_dtype": "int8"},
        packed | {"activations": "float32"},
        packed | {"activations": "int8"},
        packed | {"activations": "int8", "cache_dtype": "int8"},
    )
    for number, how in enumerate(ways):
        engine, served = started(how=how, prefix_store=None)
        wanted = engine.submit(served, prompt, greedy(6), system=SYSTEM).result().ids
        for time_ in range(2):
            engine, served = started(how=how)
            done = engine.submit(served, prompt, greedy(6), system=SYSTEM).result()
            assert done.ids == wanted, how
            assert done.reused_tokens == (SYSTEM if time_ else 0), how
            if not time_:
                quiet(engine, 2)
            assert engine.close(30)
        assert len(list(place.glob("*.prefix"))) >= 2 * (number + 1)


def test_no_other_scope_is_served_from_it(started, place, rng):
    prompt = text(rng, SYSTEM + 20)
    engine, served = started()
    engine.submit(served, prompt, greedy(3), scope="a", system=SYSTEM).result()
    quiet(engine, 2)
    engine.close(30)
    engine, served = started()
    for scope, reused in (("b", 0), ("", 0), ("A", 0), ("a", SYSTEM)):
        assert engine.submit(served, prompt, greedy(3), scope=scope, system=SYSTEM).result().reused_tokens == reused
    assert engine.report().prefixes_read == 1


def test_other_weights_in_the_same_place_find_nothing(started, place, folder, rng):
    prompt = text(rng, SYSTEM + 20)
    engine, served = started()
    engine.submit(served, prompt, greedy(3), system=SYSTEM).result()
    quiet(engine, 2)
    engine.close(30)
    model_in(folder, seed=1)
    engine, served = started()
    assert engine.submit(served, prompt, greedy(3), system=SYSTEM).result().reused_tokens == 0
    assert engine.report().prefixes_read == 0


def test_nothing_is_written_or_read_where_reading_the_tokens_is_faster(started, place, rng):
    prompt = text(rng, SYSTEM + 20)
    engine, served = started(seconds=1e-12)
    engine.submit(served, prompt, greedy(3), system=SYSTEM).result()
    until(lambda: not disk_of(engine)._idle_since)
    assert engine.report().prefixes_written == 0
    engine.close(30)
    engine, served = started()
    engine.submit(served, prompt, greedy(3), system=SYSTEM).result()
    quiet(engine, 2)
    engine.close(30)
    engine, served = started(seconds=1e-12)
    assert engine.submit(served, prompt, greedy(3), system=SYSTEM).result().reused_tokens == 0
    assert engine.report().prefixes_read == 0


def test_what_leaves_the_device_and_the_host_comes_back_from_the_disk(started, place, cold, rng, monkeypatch):
    monkeypatch.setattr(disk_store, "IDLE_SECONDS", 1000.0)
    engine, served = started(kv_bytes=2 * 32 * PAGE_BYTES, max_snapshots=1)
    histories = [text(rng, 60) for _ in range(5)]
    answers = [list(engine.submit(served, history, greedy(4)).result().ids) for history in histories]
    for history, answer in zip(histories, answers, strict=True):
        done = engine.submit(served, [*history, *answer, *text(rng, 5)], greedy(4)).result()
        assert done.reused_tokens >= 48
    assert engine.report().prefixes_read >= 3


def test_an_engine_that_ends_writes_what_is_idle(started, place, rng, monkeypatch):
    monkeypatch.setattr(disk_store, "IDLE_SECONDS", 1000.0)
    prompt = text(rng, 60)
    engine, served = started()
    done = engine.submit(served, prompt, greedy(4)).result()
    settle(engine)
    assert list(place.glob("*.prefix")) == []
    assert engine.close(30)
    engine, served = started()
    assert engine.submit(served, [*prompt, *done.ids, 9], greedy(4)).result().reused_tokens == 63


def test_a_turn_takes_the_place_of_the_one_before_it(started, place, rng):
    engine, served = started()
    history = text(rng, 40)
    for turn in range(3):
        history += [*engine.submit(served, history, greedy(4)).result().ids, *text(rng, 15)]
        quiet(engine, turn + 1)
        assert len(list(place.glob("*.prefix"))) == 1


@pytest.mark.long
def test_damaged_files_cost_a_second_reading_and_nothing_else(started, place, rng):
    prompt = text(rng, SYSTEM + 20)
    engine, served = started()
    wanted = engine.submit(served, prompt, greedy(6), system=SYSTEM).result().ids
    quiet(engine, 2)
    engine.close(30)
    good = {path: path.read_bytes() for path in place.glob("*.prefix")}
    engine, served = started()
    scopes = 0
    for number in range(40):
        for path, data in good.items():
            bad = bytearray(data[: rng.randrange(len(data))] if number % 3 == 0 else data)
            if number % 3:
                bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            path.write_bytes(bytes(bad))
        engine._owner.call(kv_store_of(engine).evict_idle)
        disk_of(engine)._there_is.prefixes.refresh()
        done = engine.submit(served, prompt, greedy(6), system=SYSTEM).result()
        assert done.ids == wanted
        scopes += done.reused_tokens == 0
    assert scopes > 20
    assert engine.report().prefixes_rejected > 20


def test_a_request_that_waits_for_the_disk_keeps_no_other(started, place, rng, monkeypatch):
    prompt = text(rng, SYSTEM + 20)
    engine, served = started()
    engine.submit(served, prompt, greedy(3), system=SYSTEM).result()
    quiet(engine, 2)
    engine.close(30)
    go, read = threading.Event(), StoredPrefixes.read
    monkeypatch.setattr(StoredPrefixes, "read", lambda self, stored: (go.wait(300), read(self, stored))[1])
    engine, served = started()
    waits = [engine.submit(served, prompt, greedy(3), system=SYSTEM) for _ in range(3)]
    late = engine.submit(served, prompt, greedy(3), system=SYSTEM, timeout=0.2)
    gone = engine.submit(served, prompt, greedy(3), system=SYSTEM)
    assert_works(engine, served)
    with pytest.raises(DeadlineError):
        late.result()
    gone.cancel()
    with pytest.raises(CancelledRequestError):
        gone.result()
    assert engine.report().prefixes_read == 0
    go.set()
    assert [wait.result().reused_tokens >= SYSTEM for wait in waits] == [True] * 3
    assert engine.report().prefixes_read == 1, "the file was read once for all of them"


def test_a_device_that_refuses_a_copy_costs_nothing(started, place, rng, caplog, monkeypatch):
    engine, served = started()
    refused = threading.Event()

    def refuse(*_, **__):
        refused.set()
        raise resource_exhausted()

    monkeypatch.setattr(MappedPages, "read", refuse)
    engine.submit(served, text(rng, SYSTEM), greedy(3)).result()
    assert refused.wait(300)
    assert_works(engine, served)
    assert "could not be copied for the disk" in caplog.text
    assert engine.report().prefixes_written == 0


def test_a_folder_that_cannot_be_used_costs_a_warning_and_nothing_else(started, place, cold, rng, said):
    place.mkdir(parents=True)
    place.chmod(0o777)
    engine, served = started()
    for _ in range(2):
        assert_works(engine, served)
    assert engine.report().prefixes_written == 0
    assert "can be written to by others" in said.pop()


def test_encrypted_prefixes_are_those_of_one_key(started, place, tmp_path, rng):
    pytest.importorskip("cryptography")
    prompt = text(rng, SYSTEM + 20)
    keys = [tmp_path / name for name in ("key", "another")]
    for number, key in enumerate(keys):
        key.write_bytes(bytes(range(65 + number, 105 + number)))
        key.chmod(0o600)
    engine, served = started(prefix_key_file=keys[0])
    wanted = engine.submit(served, prompt, greedy(4), system=SYSTEM).result().ids
    quiet(engine, 2)
    needle = engine._owner.call(lambda: of_a_token(kv_store_of(engine).held))
    engine.close(30)
    assert not any(needle in path.read_bytes() for path in place.glob("*.prefix"))
    for key, reused in ((None, 0), (keys[1], 0), (keys[0], SYSTEM)):
        engine, served = started(prefix_key_file=key)
        done = engine.submit(served, prompt, greedy(4), system=SYSTEM).result()
        assert (done.ids, done.reused_tokens) == (wanted, reused)
        if key is None:
            quiet(engine, 2)
            assert any(needle in path.read_bytes() for path in place.glob("*.prefix")), "else it proves nothing"
        engine.close(30)


@pytest.mark.long
def test_machines_that_share_a_folder_read_what_the_others_wrote(started, place, tmp_path, rng, monkeypatch, said):
    """Each has a cache of its own and the same key; one of them may only read, and one has another key."""
    pytest.importorskip("cryptography")
    prompt, mounted = text(rng, SYSTEM + 20), tmp_path / "mounted"
    mounted.mkdir()
    for number, name in enumerate(("key", "another")):
        (tmp_path / name).write_bytes(bytes(range(65 + number, 105 + number)))
        (tmp_path / name).chmod(0o600)

    def on(machine, key="key"):
        monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path / machine))
        return started(prefix_store=None, prefix_folder=mounted, prefix_key_file=tmp_path / key)

    engine, served = on("a")
    wanted = engine.submit(served, prompt, greedy(4), system=SYSTEM).result().ids
    quiet(engine, 2)
    files = sorted(path.name for path in mounted.iterdir())
    for machine, key, reused in (("b", "key", SYSTEM), ("c", "another", 0), ("b", "key", SYSTEM)):
        other, served = on(machine, key)
        done = other.submit(served, prompt, greedy(4), system=SYSTEM).result()
        assert (done.ids, done.reused_tokens) == (wanted, reused)
        assert other.close(30)
    assert {path.name for path in mounted.iterdir()} > {*files}, "the other key's are beside them"
    for path in mounted.iterdir():  # whatever becomes of them, the answer comes as if cold
        path.write_bytes(path.read_bytes()[:-1])
    other, served = on("d")
    done = other.submit(served, prompt, greedy(4), system=SYSTEM).result()
    assert (done.ids, done.reused_tokens) == (wanted, 0)
    engine.close(30)
    assert not said


def test_a_key_that_is_none_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(InputError, match=r"prefix_key_file: .* cannot be read"):
        Engine(Settings(prefix_store="1GB", prefix_key_file=tmp_path / "none"))
    with pytest.raises(InputError, match="expected prefix_store too"):
        Engine(Settings(prefix_key_file=tmp_path / "none"))
    with pytest.raises(InputError, match="prefix_folder: expected prefix_key_file too"):
        Engine(Settings(prefix_folder=tmp_path))


def test_without_the_setting_there_is_no_store(engine_of, folder, place, rng):
    engine = engine_of(ladders=SMALL)
    served = engine.load(folder)
    engine.submit(served, text(rng, SYSTEM), greedy(3), system=60).result()
    assert kv_store_of(engine).disk_store is None
    assert engine.close(30)
    assert not place.exists()


@pytest.mark.slow
def test_random_conversations_over_many_restarts_never_change_an_answer(started, place, rng):
    rng = random.Random(5)
    plain, without = started(prefix_store=None)
    histories = [text(rng, rng.randint(20, 60)) for _ in range(6)]
    reused = 0
    for _ in range(12):
        engine, served = started(prefix_store=60_000, kv_bytes=2 * 64 * PAGE_BYTES)
        for _ in range(6):
            history = rng.choice(histories)
            prompt = [*history[: rng.randint(18, len(history))], *text(rng, rng.randint(1, 6))][: CONTEXT - 8]
            scope = rng.choice("ab")
            done = engine.submit(served, prompt, greedy(4), scope=scope, system=18).result()
            assert done.ids == plain.submit(without, prompt, greedy(4), scope=str(rng.random()), system=18).result().ids
            reused += done.reused_tokens
            if len(prompt) < CONTEXT - 30:
                histories[rng.randrange(6)] = [*prompt, *done.ids]
        assert engine.close(30)
        assert sum(path.stat().st_size for path in place.glob("*.prefix")) <= 60_000
    assert reused > 1000


def test_past_answers_survive_a_restart_where_files_are_encrypted(engine_of, folder, place, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(model_drafts, "IDLE_SECONDS", 0.0)
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    prompts = {scope: text(rng, 9) for scope in ("one", "other")}

    def answered(scope, prompt, **settings):
        """Return the tokens of an answer, and how many of them were drafted from past ones, in a process of its own."""
        engine = engine_of(drafts=(SUFFIXES,), prefix_store="1GB", **settings)
        served = engine.load(folder)
        known(engine)
        (model,) = engine._owner.models.known.values()
        if (keeper := model.drafts._keeper) is not None:
            keeper.ask(scope)
            until(lambda: not keeper.comes(scope))
        done = engine.submit(served, prompt, greedy(24), scope=scope).result()
        assert engine.close(30)
        return done.ids, done.accepted_tokens

    first = {scope: answered(scope, prompt, prefix_key_file=key) for scope, prompt in prompts.items()}
    assert all(accepted == 0 for _, accepted in first.values())
    for scope, prompt in prompts.items():
        ids, accepted = answered(scope, prompt, prefix_key_file=key)
        assert ids == first[scope][0]
        assert accepted > 10, "of 23"
    assert answered("one", prompts["other"], prefix_key_file=key)[1] == 0, "of another scope"
    assert any(name.name.startswith("answers-") for name in place.iterdir())
    shutil.rmtree(place)
    for _ in range(2):
        assert answered("one", prompts["one"])[1] == 0
    assert not any(name.name.startswith("answers-") for name in place.iterdir()), "no key, no tokens in a file"
