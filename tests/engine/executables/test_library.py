"""Compiled programs: made once a process, kept, found again, and made again where what was kept is of no use."""

from __future__ import annotations

import logging
import re
import threading
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.device.page_pool import Tables
from langchain_gemma_jax.engine.device.programs import PAGES_AT_ONCE, Programs, Shape
from langchain_gemma_jax.engine.executables import fingerprint
from langchain_gemma_jax.engine.executables import library as library_module
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.engine.executables.remembered import LONGEST, FirstNeeded
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from tests.engine.faults_support import in_threads
from tests.engine.tiny import CONTEXT

EMPTY, COPY = ("empty",), ("copy_pages",)  # which compile at once


@pytest.fixture
def shape(tiny_model):
    return Shape(tiny_model.architecture, tiny_model.recipe, 320, CONTEXT, PageCounts(20, 9, 8), 3, loop_steps=1)


@pytest.fixture
def store(tmp_path):
    tmp_path.chmod(0o700)
    return Store(tmp_path / "programs")


@pytest.fixture
def library_of(shape, tiny_model, store):
    """As a new process has it: nothing is made yet."""

    def library_of(**options):
        values = {"store": store, "tally": Tally()} | options
        return Library(Programs(shape, tiny_model.placement), **values)

    return library_of


def counts(library):
    return library._tally.hits, library._tally.misses


def test_what_one_library_makes_the_next_finds(library_of):
    first, second = library_of(), library_of()
    made = first.of(EMPTY)()
    assert counts(first) == (0, 1)
    assert not first.make(EMPTY).loaded
    found = second.of(EMPTY)()
    assert counts(second) == (1, 0)
    assert second.make(EMPTY).loaded
    assert second.make(EMPTY).cost == pytest.approx(first.make(EMPTY).seconds)
    assert jax.tree.structure(made) == jax.tree.structure(found)
    assert second._tally.seconds_saved == pytest.approx(second.make(EMPTY).cost - second.make(EMPTY).seconds)


def test_a_found_program_gives_away_what_the_made_one_does(library_of):
    pages = jax.device_put(Tables(*[np.zeros(PAGES_AT_ONCE, np.int32)] * 2), jax.devices()[0])
    for library in (library_of(), library_of()):
        pool = library.of(EMPTY)()
        contents = library.of(("take_pages",))(pages, pool)
        assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(pool))
        copied = library.of(COPY)(pages, pages, pool)
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(pool))
        assert not any(leaf.is_deleted() for leaf in jax.tree.leaves((copied, contents, pages)))


def test_without_a_store_nothing_is_kept(library_of):
    library = library_of(store=None)
    library.of(EMPTY)()
    assert counts(library) == (0, 0)
    assert library.first_needed() == []


def test_where_others_make_it_too_a_program_is_made_before_it_is_called(library_of):
    told = []
    library, alone = library_of(making=told.append), library_of()
    program = library.of(EMPTY)
    assert told == [EMPTY]
    assert library.there(EMPTY)
    assert library.of(EMPTY) is program
    assert library.first_calls() == [EMPTY]
    alone.of(EMPTY)
    assert not alone.there(EMPTY)


def test_threads_make_a_program_once(library_of, monkeypatch):
    library, compiled = library_of(), []
    compile_ = Library._compile
    monkeypatch.setattr(Library, "_compile", lambda self, key: compiled.append(key) or compile_(self, key))
    results = in_threads(8, lambda _: library.make(EMPTY))
    assert compiled == [EMPTY]
    assert all(result is results[0] for result in results)


def test_what_fails_can_be_tried_again(library_of, monkeypatch):
    library, compile_ = library_of(), Library._compile
    monkeypatch.setattr(Library, "_compile", lambda self, key: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        library.make(EMPTY)
    monkeypatch.setattr(Library, "_compile", compile_)
    assert not library.make(EMPTY).loaded


def test_a_program_that_is_whole_but_cannot_be_loaded_is_made_anew_and_replaced(library_of, store, caplog):
    first = library_of()
    first.make(EMPTY)
    name = fingerprint.name(first._family, EMPTY)
    store.put(name, b"not what JAX serializes", label="empty", seconds=1.0)
    second = library_of()
    with caplog.at_level(logging.WARNING):
        second.of(EMPTY)()
    assert counts(second) == (0, 1)
    assert "could not be loaded and is made again" in caplog.text
    assert library_of().make(EMPTY).loaded


def test_a_platform_that_cannot_give_programs_away_still_runs_them(library_of, monkeypatch, caplog):
    def refuse(_):
        raise NotImplementedError("this backend does not serialize")

    monkeypatch.setattr(library_module, "_dump", refuse)
    for _ in range(2):
        library = library_of()
        with caplog.at_level(logging.WARNING):
            library.of(EMPTY)()
        assert counts(library) == (0, 1)
    assert "cannot be kept on this platform: NotImplementedError in test_library.py, line" in caplog.text


def test_whoever_makes_it_meanwhile_is_waited_for(library_of, monkeypatch):
    first, second = library_of(), library_of()
    began, go_on, compile_ = threading.Event(), threading.Event(), Library._compile

    def slow(self, key):
        began.set()
        assert go_on.wait(300)
        return compile_(self, key)

    monkeypatch.setattr(Library, "_compile", slow)
    making = threading.Thread(target=first.make, args=(EMPTY,))
    making.start()
    assert began.wait()
    waiting = threading.Thread(target=second.make, args=(EMPTY,))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    go_on.set()
    making.join()
    waiting.join()
    assert (counts(first), counts(second)) == ((0, 1), (1, 0))


def test_nobody_is_waited_for_for_ever(library_of, monkeypatch):
    first, second = library_of(), library_of(patience=0.1)
    began, go_on, compile_ = threading.Event(), threading.Event(), Library._compile

    def slow(self, key):
        if self is first:
            began.set()
            assert go_on.wait(300)
        return compile_(self, key)

    monkeypatch.setattr(Library, "_compile", slow)
    making = threading.Thread(target=first.make, args=(EMPTY,))
    making.start()
    assert began.wait()
    assert not second.make(EMPTY).loaded
    go_on.set()
    making.join()


def test_what_is_needed_soon_is_handed_on_once(library_of):
    handed = []
    library = library_of(background=SimpleNamespace(submit=handed.append, closed=False))
    library.make(EMPTY)
    library.of(EMPTY)()
    for _ in range(2):
        library.soon([EMPTY, COPY])
    assert len(handed) == 1
    assert not handed[0]().loaded
    assert library.make(COPY)


def test_what_waits_to_be_made_and_what_is_being_made_is_counted(library_of, monkeypatch):
    tasks: list = []
    library = library_of(background=SimpleNamespace(submit=tasks.append, closed=False))
    tally = library._tally
    library.soon([EMPTY, COPY, EMPTY])
    assert (tally.waiting, tally.making) == (2, 0)
    find, seen = library._find, []

    def looked_at(key: tuple) -> object:
        seen.append((tally.waiting, tally.making))
        if key == COPY:
            raise ValueError("it cannot be made")
        return find(key)

    monkeypatch.setattr(library, "_find", looked_at)
    tasks[0]()
    with pytest.raises(ValueError, match="cannot be made"):
        tasks[1]()
    assert seen == [(1, 1), (0, 1)]
    assert (tally.waiting, tally.making) == (0, 0)


# What is needed first.


def test_the_first_programs_of_one_process_are_told_to_the_next(store):
    opening = FirstNeeded(store, "family")
    assert opening.recall() == []
    keys = [("empty",), ("read", 16, 32), ("pick", 1), ("step", 1, 32)]
    assert [opening.add(key) for key in [*keys[:2], keys[0], *keys[2:]]] == [False, False, False, False, True]
    assert not opening.add(("step", 1, 64))
    opening.remember()
    assert FirstNeeded(store, "family").recall() == keys
    assert FirstNeeded(store, "another family").recall() == []


def test_an_opening_has_an_end(store):
    opening = FirstNeeded(store, "family")
    told = [opening.add(("read", size, 512)) for size in range(20)]
    assert told.index(True) == LONGEST - 1
    assert told.count(True) == 1


def test_an_opening_that_stays_is_not_written_again(store):
    for _ in range(2):
        opening = FirstNeeded(store, "family")
        opening.add(("step", 1, 32))
        opening.remember()
    assert store.counts.written == 1


@pytest.mark.long
def test_results_of_a_found_program_are_those_of_the_made_one(library_of, shape, tiny_model):
    key = ("read", 4, 32)
    found = []
    for library in (library_of(), library_of()):
        tables = Tables(np.array([[3, 1, 2, 4]], np.int32), np.array([[2, 5, 1]], np.int32))
        numbers = np.zeros(1, np.int32), np.full(1, 3, np.int32), np.array(2, np.int32)
        put = jax.device_put((np.array([[5, 6, 7, 0]], np.int32), *numbers, tables), jax.devices()[0])
        hidden, ends, _ = library.of(key)(tiny_model.params, *put, library.of(EMPTY)())
        found.append((np.asarray(hidden), np.asarray(ends)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1].tolist() == found[1][1].tolist() == [*range(3, 3 + shape.picks)]


# What loads and does not work.


@pytest.mark.long
def test_what_jax_found_in_a_cache_of_the_users_is_not_kept(library_of, tmp_path, store):
    """Serialized without its code, a program loads, and fails when it runs."""
    from jax.experimental.compilation_cache import compilation_cache

    before = {name: getattr(jax.config, name) for name in ("jax_compilation_cache_dir", "jax_enable_compilation_cache")}
    least = jax.config.jax_persistent_cache_min_compile_time_secs
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "theirs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        compilation_cache.reset_cache()
        for whole in (True, False):
            jax.clear_caches()
            library = library_of()
            assert library.make(COPY).whole == whole
            store.clear()
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", least)
        compilation_cache.reset_cache()
        jax.clear_caches()


def test_only_what_came_from_the_disk_is_distrusted(library_of, store, caplog):
    made = library_of()
    made.make(EMPTY)
    assert not made.distrust(TypeError("what a tenant sent"))
    assert len(store.entries()) == 1
    found = library_of()
    found.make(EMPTY)
    found.make(COPY)
    assert found.distrust(TypeError("what a tenant sent"))
    assert re.search("1 that came from the disk are compiled again: TypeError$", caplog.text.rstrip()), "it says why"
    assert [entry.label for entry in store.entries()] == [" copy_pages"]
    assert not found.make(EMPTY).loaded
    assert library_of().make(EMPTY).loaded


@pytest.mark.long
def test_a_program_from_the_disk_that_fails_costs_time_and_no_answer(engine_of, tiny_model, store, monkeypatch):
    from langchain_gemma_jax.engine.base.ladders import Ladders
    from langchain_gemma_jax.engine.executables import libraries
    from tests.engine.faults_support import greedy

    def with_store(programs, tally, name, background):
        return Library(programs, store, tally, background=background)

    monkeypatch.setattr(libraries, "library_of", with_store)
    ladders = Ladders(chunks=(16,), capacities=(CONTEXT,), rows=(1,), draft=0)

    def ask(engine, served):
        return [engine.submit(served, [2, 10 + index, 11], greedy(12)).result() for index in range(2)]

    first = engine_of(ladders=ladders)
    expected = ask(first, first.serve(tiny_model))
    broken = engine_of(ladders=ladders)
    served = broken.serve(tiny_model)
    load, calls = library_module._load, []

    def load_broken(entry, signatures, key, device):
        call = load(entry, signatures, key, device)

        def fail_after_some(*args):
            calls.append(key)
            if len(calls) > 5:
                raise jax.errors.JaxRuntimeError("NOT_FOUND: Function fusion not found (type id: 1)")
            return call(*args)

        return fail_after_some if key[0] in {"step", "pick"} else call

    monkeypatch.setattr(library_module, "_load", load_broken)
    found = ask(broken, served)
    assert [one.ids for one in found] == [one.ids for one in expected]
    assert broken.report().failed == 0
    assert broken.report().compiles > 0
    assert len(calls) > 5
