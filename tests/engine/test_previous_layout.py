"""The files of another release on the disk: programs, their needs, what was in memory. There is no warning."""

from __future__ import annotations

import json
import logging
import os

import pytest

from langchain_gemma_jax.compile_cache.entry import MAGIC, seal
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.executables.remembered import FirstNeeded
from langchain_gemma_jax.engine.residency.status_file import shown_models
from tests.engine.faults_support import SMALL, greedy
from tests.engine.tiny import settle

PROMPT = list(range(10, 20))
OTHER_KEYS = [b"", b"what is needed", b"3", b"null", b'{"keys": []}', b"[3]", b"[[]]", b'[["read", "16"], ["pick", 1]]',
              b'[["read", 16.5]]', b'[[16, "read"]]', b"[" * 100_000]  # fmt: skip


@pytest.fixture
def silence(caplog):
    """Nothing is said that a user would see. That there are no warnings, pytest sees to."""
    caplog.set_level(logging.INFO)
    yield
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The folders of compiled programs and of status files, as another layout would have left them."""
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    programs, running = tmp_path / "programs", tmp_path / "running"
    for folder in (programs, running):
        folder.mkdir(mode=0o700)
    sealed = seal("the same name", b"a program", label="step", seconds=1.0) + b"a program"
    old = MAGIC.replace(b"1", b"0") + sealed[len(MAGIC) :]
    left = {
        programs / f"{'0' * 40}.entry": old,
        programs / f"{'1' * 40}.entry": sealed,  # under a name that is digested otherwise
        programs / "manifest": b'{"version": 0, "entries": []}',
        programs / "jit_step-0123456789abcdef-cache": b"JAX's own",
        running / f"{os.getpid()}.json": json.dumps([{"model": "a"}]).encode(),
        running / "1-00ff.json": json.dumps({"models": {"a": 3}}).encode(),
        running / "2-00ff.json": json.dumps([{"process": 2, "name": "a", "bytes": 3}]).encode(),
        running / "notices.db": b"another form",
    }
    for path, content in left.items():
        path.write_bytes(content)
        path.chmod(0o600)
    return programs, running


@pytest.mark.long
def test_an_engine_starts_beside_what_another_release_left_and_replaces_it(places, silence, tiny_model, monkeypatch):
    programs, running = places

    def library_of(traced, tally, name, background):
        return Library(traced, Store(programs), tally, name=name, background=background)

    def answer():
        engine = Engine(Settings(ladders=SMALL, guards="raise", drafts=False))
        served = engine.serve(tiny_model)
        ids = engine.submit(served, PROMPT, greedy(3)).result().ids
        settle(engine)
        (shown,) = shown_models()
        assert (shown.process, shown.name) == (os.getpid(), tiny_model.name)
        report = engine.report()
        assert engine.close(30)
        return ids, report.cache_hits, report.cache_misses

    monkeypatch.setattr(libraries, "library_of", library_of)
    ids, hits, misses = answer()
    assert (hits, misses) == (0, 4)
    assert answer() == (ids, 4, 0), "what was compiled instead is there for the next one"
    kept = {path.name for path in programs.iterdir()}
    assert not kept & {f"{'0' * 40}.entry", "jit_step-0123456789abcdef-cache"}
    assert shown_models() == []
    left = {path.name for path in running.iterdir()}
    assert left == {f"{os.getpid()}.json", "notices.db"}, "what nobody holds goes, if it is called as ours are"


def test_what_another_release_says_is_needed_first_is_passed_over_and_replaced(tmp_path, silence):
    store, keys = Store(tmp_path / "programs"), [("read", 16, 512), ("pick", 1), ("step", 1, 512)]
    for payload in OTHER_KEYS:
        assert store.put("opening/family", payload, label="what is needed first", seconds=0.0)
        first = FirstNeeded(store, "family")
        assert first.recall() == [], payload[:40]
        for key in keys:
            first.add(key)
        first.remember()
        assert FirstNeeded(store, "family").recall() == keys
