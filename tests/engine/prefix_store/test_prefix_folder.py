"""The folder of prefixes: private, within its budget, and never a reason to fail."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache import warning
from langchain_gemma_jax.engine.prefix_store import prefix_folder
from langchain_gemma_jax.private.file_locks import give_back, take, try_hold
from langchain_gemma_jax.private.folder import open_folder
from tests.compile_cache.faults import BROKEN, FULL, QUOTA, READ_ONLY
from tests.engine.prefix_store.example_prefixes import found_right, put, store_in

REPOSITORY = Path(__file__).parents[3]
WRITER = [sys.executable, "-m", "tests.engine.prefix_store.example_prefixes"]


def size_of(folder):
    return sum(path.stat().st_size for path in folder.glob("*.prefix"))


def test_the_budget_is_kept_and_what_was_not_used_goes_first(tmp_path):
    folder = tmp_path / "prefixes"
    one = store_in(folder)
    put(one, 0)
    cap = 5 * size_of(folder) + 100
    stored = store_in(folder, cap)
    for seed in range(1, 60):
        put(stored, seed)
        assert size_of(folder) <= cap
        assert found_right(stored, seed)
        assert found_right(stored, 0), "it is used all the time"
        time.sleep(0.002)  # so that the file system sees an order
    assert stored._folder.counts.prefixes_evicted >= 54
    left = [seed for seed in range(60) if found_right(stored, seed)]
    assert left == [0, 56, 57, 58, 59]
    assert put(store_in(folder, 100), 1) is None, "more than all that may be kept"
    assert found_right(stored, 59)


def test_who_does_not_get_a_turn_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(prefix_folder, "PATIENCE", 0.05)
    folder = tmp_path / "prefixes"
    stored = store_in(folder)
    put(stored, 0)
    opened = open_folder(folder, folder)
    hold = take(opened, prefix_folder._WRITING, 1.0)
    assert put(stored, 1) is None
    give_back(opened, prefix_folder._WRITING, hold)
    assert put(stored, 1) is not None
    assert [path.suffix for path in folder.glob("*.prefix")] == [".prefix", ".prefix"]


@pytest.mark.long
def test_several_processes_keep_one_budget(tmp_path):
    folder = tmp_path / "prefixes"
    put(store_in(folder), 0)
    cap = 8 * size_of(folder)
    writers = [
        subprocess.Popen([*WRITER, str(folder), str(1000 * n), "40", str(cap), "8"], cwd=REPOSITORY) for n in (1, 2, 3)
    ]
    most = 0
    while any(writer.poll() is None for writer in writers):
        found = 0
        for path in list(folder.glob("*.prefix")):
            with suppress(FileNotFoundError):
                found += path.stat().st_size
        most = max(most, found)
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert 0 < most <= cap + cap // 8, "a listing that takes time may count a file that goes and one that came"
    assert size_of(folder) <= cap
    assert len(list(folder.glob("*.prefix"))) >= 7, "and no more is deleted than has to be"
    assert len(list(folder.glob(".*"))) == 0


def kills(folder, count, seconds):
    """Kill a writer so many times, at moments spread over its work. Gives how many prefixes were found, all right."""
    found = 0
    for number in range(count):
        writer = subprocess.Popen(
            [*WRITER, str(folder), str(100 * number), "100", str(2**24), "4000"], cwd=REPOSITORY, stdout=subprocess.PIPE
        )
        writer.stdout.readline()
        time.sleep(seconds * number / count)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        stored = store_in(folder, 2**24)
        found += sum(found_right(stored, seed, 4000) for seed in range(100 * number, 100 * number + 100))
        assert stored._folder.counts.prefixes_rejected == 0, "what is there is whole"
        assert size_of(folder) <= 2**24
    return found


@pytest.mark.long
def test_a_writer_that_is_killed_leaves_nothing_wrong(tmp_path):
    folder = tmp_path / "prefixes"
    assert kills(folder, 3, 0.1) > 0
    put(store_in(folder, 2**24), 1)
    assert [path.name for path in folder.glob(".*")] == [], "the next writer tidies up after the dead"


@pytest.mark.slow
def test_a_writer_that_is_killed_at_fifty_moments_leaves_nothing_wrong(tmp_path):
    assert kills(tmp_path / "prefixes", 50, 0.25) > 50


def test_what_a_living_writer_is_at_is_left_alone(tmp_path):
    folder = tmp_path / "prefixes"
    stored = store_in(folder)
    put(stored, 1)
    opened = open_folder(folder, folder)
    hold = try_hold(opened, ".0123.tmp", os.O_CREAT | os.O_WRONLY)
    (folder / ".dead.tmp").write_bytes(b"half")
    (folder / "readme").write_bytes(b"not ours")
    put(stored, 2)
    assert sorted(path.name for path in folder.glob(".*")) == [".0123.tmp"]
    assert not (folder / "readme").exists()
    hold.release()
    assert stored._folder.clear() == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [FULL, QUOTA, BROKEN, READ_ONLY], ids=errno.errorcode.get)
def test_a_disk_that_takes_no_more_costs_a_warning_and_what_is_there_is_still_read(tmp_path, faults, said, error):
    folder = tmp_path / "prefixes"
    stored = store_in(folder)
    put(stored, 1)
    with faults.failing(error):
        for seed in (2, 3, 1):
            assert put(stored, seed) is None
        assert found_right(stored, 1)
    assert found_right(stored, 1)
    assert not stored.writes
    message = said.pop()
    assert os.strerror(error) in message
    assert "GEMMA_JAX_CACHE_DIR" in message
    assert "configure(prefix_store=None)" in message
    assert put(store_in(folder), 2), "the next process tries again"


def test_a_call_of_a_write_that_fails_leaves_no_half_file(tmp_path, faults, said):
    folder = tmp_path / "prefixes"
    failed = set()
    for first in range(1, 40):
        stored = store_in(folder)
        put(stored, 1)
        with faults.failing(FULL, first, first):
            wrote = put(stored, 2)
        failed |= {*faults.failed}
        said.clear()
        for lock in warning._warned.values():
            if lock.locked():
                lock.release()
        fresh = store_in(folder)
        assert found_right(fresh, 1)
        assert found_right(fresh, 2) or wrote is None
        assert fresh._folder.counts.prefixes_rejected == 0
        fresh._folder.clear()
        if not faults.failed:
            break
    assert {"open", "write", "replace", "flock"} <= failed


def test_a_file_that_others_can_write_to_or_that_is_a_link_is_rejected(tmp_path):
    folder = tmp_path / "prefixes"
    name = put(store_in(folder), 1)
    (folder / name).chmod(0o666)
    assert not found_right(store_in(folder), 1)
    assert not (folder / name).exists()
    put(store_in(folder), 1)
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    assert not found_right(store_in(folder), 1)
    assert (tmp_path / "elsewhere").exists()
