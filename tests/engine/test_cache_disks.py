"""An engine on a disk that fails: at each call that writes, in each way, once or for good. Its tokens are the same."""

from __future__ import annotations

import errno
import gc
import logging
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache import warning
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library
from tests.compile_cache.faults import BROKEN, CALLS, FORBIDDEN, FULL, QUOTA, READ_ONLY, Faults
from tests.engine.faults_support import greedy
from tests.engine.tiny import settle

# The quick tests of the same are those of the store.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ERRORS = {errno.errorcode[error]: error for error in (FULL, BROKEN, READ_ONLY, FORBIDDEN, QUOTA)}
LADDERS = Ladders(chunks=(16,), capacities=(128,), rows=(1,), draft=0)
PROMPT = [2, 10, 11, 12]


@pytest.fixture
def faults(monkeypatch):
    return Faults(monkeypatch)


@pytest.fixture
def said(monkeypatch, caplog):
    """Return the warnings of a process. Where warnings are errors, as here, they go to the log."""

    def said() -> list[str]:
        found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        caplog.clear()
        monkeypatch.setattr(
            warning, "_warned", {topic: threading.Lock() for topic in warning._warned}
        )  # as in the next process
        return found

    said()
    return said


def mapped() -> int:
    """How many pieces of memory the process has, where that can be seen: Linux gives it no more than 65,530."""
    gc.collect()
    maps = Path("/proc/self/maps")
    return maps.read_bytes().count(b"\n") if maps.exists() else 0


@pytest.fixture
def serve(strict_transfers, tiny_model, monkeypatch):
    """``serve(folder)``: as a new process does; but what was compiled once is not compiled again, only written.

    Gives the tokens, and how many programs were found. Nothing of the engine stays: each program that is loaded is some
    sixty pieces of memory, and XLA is killed by a signal where there are no more to be had.
    """
    compiled = {}
    compile_ = Library._compile

    def once(library, key):
        if key not in compiled:
            compiled[key] = compile_(library, key)
        return compiled[key]

    monkeypatch.setattr(Library, "_compile", once)

    def serve(folder):
        engine = Engine(Settings(ladders=LADDERS, guards="raise", drafts=False))

        def library_of(programs, tally, name, background):
            return Library(programs, Store(folder, root=folder.parent), tally, name=name, background=background)

        monkeypatch.setattr(libraries, "library_of", library_of)
        ids = engine.submit(engine.serve(tiny_model), PROMPT, greedy(4)).result().ids
        settle(engine)
        report = engine.report()
        assert report.cache_hits + report.cache_misses == report.programs == 4
        assert engine.close(30)
        return ids, report.cache_hits

    return serve


def failing_at_each_call(serve, said, faults, folder, errors, numbers, *, lasting=False):
    """Two processes whose Nth call that writes fails, and two on a disk that works. Gives which calls failed.

    They find no folder, one with a few damaged entries, or a whole one, in turns: what is written differs. On a whole
    one the first thing is that entries were used.
    """
    expected, _ = serve(folder)
    good = {path.name: path.read_bytes() for path in folder.glob("*.entry")}
    assert len(good) == 5
    failed, most = set(), mapped() + 2000
    for first in numbers:
        anew = first % 2 == 0
        if anew:
            shutil.rmtree(folder.parent)
        elif first % 4 == 1:
            for path in sorted(folder.glob("*.entry"))[: 1 + first % 5]:
                os.truncate(path, path.stat().st_size // 2)
        with faults.failing(errors[first % len(errors)], first, sys.maxsize if lasting else first):
            for _ in range(2):
                assert serve(folder)[0] == expected
                assert len(said()) <= 1, "one warning a process, not one a fault"
        if not faults.failed and anew:
            assert first > 50, "and then it ran clean"
            break
        failed |= {*faults.failed}
        if "unlink" not in faults.failed:
            assert list(folder.glob(".*.tmp")) == []
        assert serve(folder)[0] == expected
        assert said() == []
        assert serve(folder) == (expected, 4)
        assert {path.name for path in folder.iterdir()} == {*good, "manifest"}
        assert mapped() < most, "what closed engines had loaded is still there"
    return failed


@pytest.mark.parametrize("error", ERRORS)
def test_each_of_the_first_calls_may_fail_in_each_way(serve, said, faults, tmp_path, error):
    failed = failing_at_each_call(serve, said, faults, tmp_path / "cache" / "xla", [ERRORS[error]], range(1, 51))
    print(failed)  # noqa: T201
    assert len(failed) >= 5


def test_each_other_call_that_writes_may_fail(serve, said, faults, tmp_path):
    errors = list(ERRORS.values())
    failed = failing_at_each_call(serve, said, faults, tmp_path / "cache" / "xla", errors, range(51, 1000))
    print(failed)  # noqa: T201
    assert not faults.failed, "the last one ran clean"


def test_a_disk_may_fail_for_good(serve, said, faults, tmp_path):
    errors = list(ERRORS.values())
    failed = failing_at_each_call(serve, said, faults, tmp_path / "cache" / "xla", errors, range(1, 51), lasting=True)
    assert failed >= {*CALLS, "flock"} - {"chmod"}
