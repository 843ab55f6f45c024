"""Claims: one compiles, the others wait, and nobody waits for the dead."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.private.file_locks import give_back, take, try_hold
from langchain_gemma_jax.private.folder import open_folder
from tests.compile_cache import several
from tests.compile_cache.faults import FULL
from tests.compile_cache.several import tell

NAME = "0.claim"


@pytest.fixture
def folder(root):
    return open_folder(root, root)


def test_one_holds_it_and_leaves_nothing(folder):
    hold = take(folder, NAME, patience=0)
    assert take(folder, NAME, patience=0) is None
    assert folder.names() == [NAME]
    give_back(folder, NAME, hold)
    assert folder.names() == []
    again = take(folder, NAME, patience=0)
    give_back(folder, NAME, again)


def test_another_program_is_not_waited_for(folder):
    one, other = take(folder, NAME, patience=0), take(folder, "1.claim", patience=0)
    assert one
    assert other
    give_back(folder, NAME, one)
    give_back(folder, "1.claim", other)


def test_a_file_that_was_deleted_before_it_was_locked_is_not_held(folder, monkeypatch):
    # Else the next one makes a new file, and both hold "it".
    real = fcntl.flock

    def late(fd, operation):
        folder.remove(NAME)
        return real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert try_hold(folder, NAME, os.O_RDWR | os.O_CREAT) is None
    monkeypatch.undo()
    hold = take(folder, NAME, patience=0)
    assert hold
    give_back(folder, NAME, hold)


def test_a_file_that_was_replaced_before_it_was_locked_is_not_held(folder, monkeypatch):
    real = fcntl.flock
    others = []

    def late(fd, operation):
        monkeypatch.undo()
        folder.remove(NAME)
        others.append(take(folder, NAME, patience=0))
        return real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    assert try_hold(folder, NAME, os.O_RDWR | os.O_CREAT) is None
    assert folder.names() == [NAME], "it is the other's, who holds it"
    give_back(folder, NAME, *others)


def test_giving_back_twice_harms_nobody(folder):
    hold = take(folder, NAME, patience=0)
    give_back(folder, NAME, hold)
    other = take(folder, NAME, patience=0)
    give_back(folder, NAME, hold)
    assert folder.names() == [NAME]
    assert take(folder, NAME, patience=0) is None
    give_back(folder, NAME, other)


@pytest.mark.parametrize("failing", ["flock", "stat"])
def test_no_file_stays_open(folder, monkeypatch, failing):
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        hold = take(folder, NAME, patience=0)
        assert take(folder, NAME, patience=0) is None
        give_back(folder, NAME, hold)

    def fail(*_args, **_options):
        raise OSError(errno.EIO, "broken")

    if failing == "flock":
        monkeypatch.setattr(fcntl, "flock", fail)
    else:
        monkeypatch.setattr(folder, "stat", fail)
    with pytest.raises(OSError, match="broken"):
        take(folder, NAME, patience=0)
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_patience_ends(root):
    store = Store(root)
    with store.claim("a", patience=0) as alone:
        assert alone
        with store.claim("a", patience=0.2) as also:  # also for the same thread: no deadlock, only a wait
            assert not also
        with store.claim("a", patience=0) as still:
            assert not still
    with store.claim("a", patience=0) as again:
        assert again


def test_an_exception_gives_it_back(root):
    store = Store(root)
    with pytest.raises(KeyError), store.claim("a", patience=0):
        raise KeyError
    with store.claim("a", patience=0) as alone:
        assert alone


def test_who_waits_goes_on_as_soon_as_it_is_given_back(root):
    store = Store(root)
    waited = []

    def wait():
        with store.claim("a", patience=3600) as alone:
            waited.append(alone)

    thread = threading.Thread(target=wait)
    with store.claim("a", patience=0):
        thread.start()
        time.sleep(0.1)
        assert waited == []
    thread.join()
    assert waited == [True]


def test_of_many_threads_one_makes_it(root):
    store = Store(root)
    ready = threading.Barrier(12)
    made, got = [], []

    def work():
        ready.wait()
        with store.claim("a", patience=3600) as alone:
            entry = store.get("a")
            if entry is None:
                made.append(1)
                time.sleep(0.02)
                store.put("a", b"code", label="", seconds=1)
                entry = store.get("a")
        got.append((alone, entry.payload))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert made == [1]
    assert got == [(True, b"code")] * 12
    assert list(root.glob("*.claim")) == []


def test_without_a_folder_it_is_free_at_once(root, said):
    root.mkdir(0o777)
    root.chmod(0o777)
    store = Store(root)
    with store.claim("a", patience=3600) as one, store.claim("a", patience=3600) as other:
        assert one
        assert other
    assert list(root.iterdir()) == []
    assert len(said) == 1
    said.clear()


def test_who_cannot_write_waits_for_nobody(root, faults, said):
    store = Store(root)
    store.put("a", b"code", label="", seconds=1)
    with store.claim("b", patience=0), faults.failing(FULL):
        assert not Store(root).put("a", b"code", label="", seconds=1)
        other = Store(root)
        other.put("a", b"code", label="", seconds=1)
        with other.claim("b", patience=3600) as alone:
            assert alone
    assert "No space" in said.pop()


# Several processes


def test_of_eight_processes_one_makes_each_program(tmp_path):
    result = tell(several.made_once, tmp_path / "xla", 8, 3)
    assert result["statuses"] == [0] * 8
    assert result["made"] == ["0", "1", "2"]
    assert [name.rpartition(".")[2] for name in result["files"]] == ["entry", "entry", "entry", "manifest"]


def test_a_killed_holder_blocks_nobody(tmp_path):
    result = tell(several.killed_holder, tmp_path / "xla")
    assert result["statuses"] == [0, 0, 0]
    assert result["files"] in ([], ["manifest"])


def test_a_stopped_holder_is_not_waited_for_for_ever(tmp_path):
    result = tell(several.stopped_holder, tmp_path / "xla", 0.3)
    assert result["statuses"] == [0, 0, 0, 0]
    assert result["last"] == "late"
    assert len(result["files"]) == 2


def test_a_forked_child_does_not_keep_the_claim_of_a_killed_parent(tmp_path):
    result = tell(several.inherited_claim, tmp_path / "xla")
    assert result["alone"]


def test_a_forked_child_does_not_give_back_what_its_parent_holds(tmp_path):
    assert tell(several.forked_in_claim, tmp_path / "xla") == {"child": 0, "other": False, "again": True, "hits": 1}


def test_a_process_may_fork_while_its_threads_are_at_it(tmp_path):
    result = tell(several.forked_amid_threads, tmp_path / "xla", 20)
    assert result == {"statuses": [0] * 20, "rejected": 0}


def test_a_forked_child_needs_no_thread_that_it_does_not_have(tmp_path):
    assert tell(several.forked_while_locked, tmp_path / "xla") == {"status": 0}
