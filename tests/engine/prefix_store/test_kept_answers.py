"""Past answers on disk: read again after a restart, encrypted, apart by scope and model, and never wrong."""

from __future__ import annotations

import random
from array import array

import pytest

from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers
from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.prefix_store.kept_answers import KeptAnswers
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_store import PrefixStore
from langchain_gemma_jax.engine.prefix_store.sealing import Encrypted
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from tests.waiting import until

KEY = b"a key that nobody guesses, thirty-two bytes"


@pytest.fixture
def kept_of(tmp_path):
    made = []
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    files = Unchanged.now(tmp_path / "model")

    def kept_of(key=KEY, programs="programs"):
        store = PrefixStore(PrefixFolder(tmp_path / "prefixes", 2**24), Background(2), Background(1), Encrypted(key))
        made.append(store)
        there_is = store.of(files, lambda: programs)
        until(lambda: there_is.prefixes is not None)
        return KeptAnswers(store, there_is, "a model")

    yield kept_of
    for store in made:
        assert store.close(10)


def said_by(seed):
    rng = random.Random(seed)
    past = PastAnswers()
    for _ in range(rng.randrange(1, 6)):
        past.add(rng.choices(range(9), k=20), rng.choices(range(262_144), k=rng.randrange(1, 300)))
    return past


def written(kept, scope, past):
    assert kept.write(scope, past.tokens)
    until(lambda: kept._store.idle)


def read(kept, scope):
    kept.ask(scope)
    until(lambda: not kept.comes(scope))
    return kept.arrived(scope)


def test_a_restart_finds_every_scopes_own_answers_and_nobody_elses(kept_of):
    first, scopes = kept_of(), {f"tenant {seed}": said_by(seed) for seed in range(30)}
    for scope, past in scopes.items():
        written(first, scope, past)
    again = kept_of()
    for scope, past in scopes.items():
        found = read(again, scope)
        assert found.answers == past.answers
        assert found.tokens == past.tokens
        assert again.arrived(scope) is None, "they are given once"
    assert read(again, "tenant 99") is None
    for other in (kept_of(key=KEY[::-1]), kept_of(programs="other programs")):
        assert all(read(other, scope) is None for scope in scopes)
    again.forget("tenant 1")
    assert read(again, "tenant 1").answers == scopes["tenant 1"].answers


def test_no_file_shows_a_token_or_a_scope(kept_of):
    kept, past = kept_of(), PastAnswers()
    past.add((), [0x41424344] * 200)
    written(kept, "a scope's name", past)
    (name,) = kept._store.folder.names()
    raw = (kept._store.folder.path / name).read_bytes()
    assert b"DCBA" not in raw
    assert b"scope" not in raw
    assert name.startswith("answers-")


def test_damaged_files_are_dropped_with_a_line_in_the_log(kept_of, caplog):
    """Each byte of the file counts, and so does its end."""
    rng = random.Random(5)
    dropped = 0
    for number in range(60):
        kept = kept_of()
        written(kept, "a", said_by(number))
        (name,) = kept._store.folder.names()
        path = kept._store.folder.path / name
        raw = bytearray(path.read_bytes())
        if number % 3:
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        else:
            del raw[rng.randrange(len(raw)) :]
        path.write_bytes(raw)
        assert read(kept_of(), "a") is None
        dropped += not path.exists()
    assert dropped == 60
    assert len(caplog.messages) == 60
    assert "past answers on the disk were damaged" in caplog.text


def test_a_file_under_another_name_is_dropped(kept_of):
    """A scope's file that is renamed to another scope's or another model's does not become theirs."""
    for programs, scope in (("programs", "b"), ("other programs", "a")):
        kept = kept_of()
        written(kept, "a", said_by(1))
        other, folder = kept_of(programs=programs), kept._store.folder.path
        (name,) = kept._store.folder.names()
        (folder / name).rename(folder / other._there_is.prefixes.names.answers_file(scope))
        assert read(other, scope) is None
        assert kept._store.folder.names() == []


def test_the_folders_prefixes_are_not_confused_by_them(kept_of):
    kept = kept_of()
    written(kept, "a", said_by(1))
    prefixes = kept_of()._there_is.prefixes
    prefixes.refresh()
    assert prefixes.find("a", array("q", range(100)), 0) is None
    assert len(kept._store.folder.names()) == 1
    assert kept._store.folder.clear() == 1
