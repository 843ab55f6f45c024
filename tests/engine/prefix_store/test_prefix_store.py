"""The prefixes of an engine's models: found out in the background, written as far as memory and time allow."""

from __future__ import annotations

import threading

import pytest

from langchain_gemma_jax.engine.executables.background import Background
from langchain_gemma_jax.engine.prefix_store import prefix_store
from langchain_gemma_jax.engine.prefix_store.prefix_folder import PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_store import PrefixStore
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from tests.waiting import until


@pytest.fixture
def store_of(tmp_path):
    made = []

    def store_of():
        made.append(PrefixStore(PrefixFolder(tmp_path / "prefixes", 2**20), Background(2), Background(1)))
        return made[-1]

    yield store_of
    for store in made:
        assert store.close(10)


def model_in(folder, weights=b"weights"):
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(weights)
    return Unchanged.now(folder)


def test_nobody_waits_for_a_digest_that_was_never_made(store_of, tmp_path, monkeypatch):
    files, go = model_in(tmp_path / "model"), threading.Event()
    digest_of, asked = prefix_store.PrefixFolder.digest_of, []

    def slowly(self, files, *, thoroughly):
        asked.append(thoroughly)
        if thoroughly:
            go.wait(300)
        return digest_of(self, files, thoroughly=thoroughly)

    monkeypatch.setattr(prefix_store.PrefixFolder, "digest_of", slowly)
    found = store_of().of(files, lambda: "programs")
    found.first_look.result()
    assert (found.prefixes, found.never) == (None, False)
    go.set()
    until(lambda: found.prefixes is not None)
    again = store_of().of(files, lambda: "programs")
    again.first_look.result()
    assert again.prefixes.names.family == found.prefixes.names.family
    assert asked == [False, True, False], "now it is remembered"
    other = store_of().of(files, lambda: "other programs")
    other.first_look.result()
    assert other.prefixes.names.family != found.prefixes.names.family


def test_a_model_whose_files_were_changed_has_none(store_of, tmp_path):
    files = model_in(tmp_path / "model")
    model_in(tmp_path / "model", b"others")
    found = store_of().of(files, lambda: "programs")
    until(lambda: found.never)
    assert found.prefixes is None


def test_no_more_waits_to_be_written_than_memory_is_for(store_of, monkeypatch):
    monkeypatch.setattr(prefix_store, "MOST_WAITING", 100)
    store, go, done = store_of(), threading.Event(), []
    assert store.write(lambda: go.wait(300), 80), "the first one, however large"
    assert store.write(lambda: done.append(1), 20)
    assert not store.write(lambda: done.append(2), 1)
    assert not store.idle
    go.set()
    until(lambda: store.idle)
    assert store.write(lambda: done.append(3), 1000)
    assert store.close(10)
    assert done == [1, 3], "closing waits for what is to be written"
    assert store.write(lambda: done.append(4), 1)
    assert store.idle
