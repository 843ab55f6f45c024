"""A disk that fails: at each call that writes, once or for good. Answers are right, and at most one warning says so."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache import warning
from langchain_gemma_jax.compile_cache.entry import file_of
from langchain_gemma_jax.compile_cache.store import Counts, Store
from tests.compile_cache.faults import BROKEN, CALLS, FORBIDDEN, FULL, QUOTA, READ_ONLY

ERRORS = {errno.errorcode[error]: error for error in (FULL, BROKEN, READ_ONLY, FORBIDDEN, QUOTA)}
PAYLOADS = {"a": b"program a" * 100, "b": b"program b" * 100, "old": b"older" * 100}
DEAD = ".0.tmp"


def use(root, processes):
    """Have processes use a cache, one after the other. Everything that they get is right."""
    for _ in range(processes):
        store = Store(root, root=root.parent)
        for name in ["old", "a", "b"]:
            with store.claim(name, patience=0.01):
                entry = store.get(name)
                if entry is None:
                    store.put(name, PAYLOADS[name], label="", seconds=1)
                    entry = store.get(name)
                assert entry is None or entry.payload == PAYLOADS[name]
        store.discard("b")
        store.entries()
        store.verify()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "xla" / "cpu"


def put_old(folder):
    """An entry of an earlier process, a torn one, and what a dead writer left."""
    store = Store(folder, root=folder.parent)
    for name in ["old", "torn"]:
        assert store.put(name, PAYLOADS["old"], label="", seconds=1)
    os.truncate(folder / file_of("torn"), 10)
    (folder / DEAD).write_bytes(b"")


def failing_at_each_call(folder, faults, said, errors, *, lasting, anew):
    """A process whose Nth call that writes fails, and one after it on a disk that works. Gives which calls failed."""
    failed = set()
    for first in range(1, 200):
        shutil.rmtree(folder.parent.parent, ignore_errors=True)
        if not anew:
            put_old(folder)
        with faults.failing(errors[first % len(errors)], first, sys.maxsize if lasting else first):
            use(folder, processes=2)
        assert len(said) <= 1, "one warning a process, not one a fault"
        said.clear()
        if not faults.failed:
            assert first > 50, "and then it ran clean"
            return failed
        failed |= {*faults.failed}
        if "unlink" not in faults.failed:
            assert [path for path in folder.glob(".*.tmp") if path.name != DEAD] == []
        for lock in warning._warned.values():
            if lock.locked():
                lock.release()
        # The disk works again: the next process finds what is right, and writes what is missing.
        use(folder, processes=1)
        assert said == []
        assert {path.name for path in folder.iterdir() if path.suffix != ".entry"} == {"manifest"}, "and nothing else"
        after = Store(folder, root=folder.parent)
        assert [after.get(name).payload for name in ["old", "a"]] == [PAYLOADS["old"], PAYLOADS["a"]]
        assert after.counts.rejected == 0
    pytest.fail("it never ran clean")


@pytest.mark.long
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("anew", [False, True], ids=["old folder", "new folder"])
def test_each_call_that_writes_may_fail(folder, faults, said, lasting, anew):
    failed = failing_at_each_call(folder, faults, said, list(ERRORS.values()), lasting=lasting, anew=anew)
    expected = {*CALLS, "flock"} - (set() if anew else {"mkdir", "chmod"})
    assert failed == expected


@pytest.mark.slow
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("anew", [False, True], ids=["old folder", "new folder"])
@pytest.mark.parametrize("error", ERRORS)
def test_each_call_that_writes_may_fail_in_each_way(folder, faults, said, error, lasting, anew):
    assert failing_at_each_call(folder, faults, said, [ERRORS[error]], lasting=lasting, anew=anew)


def test_after_a_failed_write_nothing_is_written_and_reading_goes_on(folder, faults, said):
    put_old(folder)
    store = Store(folder, root=folder.parent)
    with faults.failing(FULL):
        assert store.get("old").payload == PAYLOADS["old"]
        assert not store.put("a", b"code", label="", seconds=1)
        begin = faults.calls
        for _ in range(3):
            assert store.get("old").payload == PAYLOADS["old"]
            assert not store.put("a", b"code", label="", seconds=1)
            with store.claim("a", patience=10):
                pass
            store.discard("old")
    assert faults.calls == begin, "it does not even try"
    assert said.pop().startswith(f"No more compiled programs are kept in {folder}: [Errno 28] No space left on device")


@pytest.mark.parametrize("error", [OSError(FULL, "full"), KeyboardInterrupt()])
def test_a_write_that_stops_half_way_leaves_what_was_there(folder, monkeypatch, said, error):
    store = Store(folder, root=folder.parent)
    assert store.put("a", b"old", label="", seconds=1)
    real = os.write

    def stops(fd, data):
        if len(data) < 100:
            raise error
        return real(fd, bytes(data)[:90])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", stops)
        if isinstance(error, KeyboardInterrupt):
            with pytest.raises(KeyboardInterrupt):
                store.put("a", PAYLOADS["a"], label="", seconds=1)
        else:
            assert not store.put("a", PAYLOADS["a"], label="", seconds=1)
            assert "full" in said.pop()
    assert list(folder.glob(".*.tmp")) == []
    assert Store(folder, root=folder.parent).get("a").payload == b"old"


def test_writing_a_little_at_a_time_is_writing(folder, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:7]))
    store = Store(folder, root=folder.parent)
    assert store.put("a", PAYLOADS["a"], label="", seconds=1)
    assert store.get("a").payload == PAYLOADS["a"]


def test_reading_a_little_at_a_time_is_reading(folder, monkeypatch):
    store = Store(folder, root=folder.parent)
    assert store.put("a", PAYLOADS["a"], label="", seconds=1)
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: real(fd, min(size, 7)))
    assert Store(folder, root=folder.parent).get("a").payload == PAYLOADS["a"]


@pytest.mark.parametrize("error", [OSError(BROKEN, "broken"), MemoryError()])
def test_an_entry_that_cannot_be_read_is_compiled_anew(folder, monkeypatch, said, error):
    store = Store(folder, root=folder.parent)
    assert store.put("a", b"code", label="", seconds=1)

    def fail(_fd, _size):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", fail)
        assert store.get("a") is None
        assert store.get("a") is None
    assert "cannot be read" in said.pop()
    assert store.counts == Counts(misses=2, written=1)
    assert store.get("a").payload == b"code", "it was not deleted for that"
    assert store.put("b", b"code", label="", seconds=1), "a failed read is no reason not to write"


def test_a_folder_that_vanishes(folder, said):
    store = Store(folder, root=folder.parent)
    assert store.put("a", b"code", label="", seconds=1)
    shutil.rmtree(folder.parent)
    assert store.get("a") is None
    assert not store.put("a", b"code", label="", seconds=1)
    with store.claim("a", patience=10) as alone:
        assert alone
    store.discard("a")
    assert (store.entries(), store.verify(), store.clear()) == ([], [], 0)
    assert "No such file" in said.pop()
    assert not folder.exists()
    assert Store(folder, root=folder.parent).put("a", b"code", label="", seconds=1), "the next process makes it again"


def test_an_entry_that_vanishes_while_it_is_read_is_still_got(folder, monkeypatch):
    store = Store(folder, root=folder.parent)
    assert store.put("a", b"code", label="", seconds=1)
    real = os.read

    def late(fd, size):
        for path in folder.glob("*.entry"):
            path.unlink()
        return real(fd, size)

    monkeypatch.setattr(os, "read", late)
    assert store.get("a").payload == b"code"
    assert store.get("a") is None


def test_where_a_folder_cannot_be_made_there_is_no_cache(folder, faults, said):
    with faults.failing(READ_ONLY):
        store = Store(folder, root=folder.parent)
        assert store.get("a") is None
        assert not store.put("a", b"code", label="", seconds=1)
    assert "Read-only file system" in said.pop()
    assert store.counts == Counts(misses=1)


def test_a_file_system_without_locks_is_only_read(folder, monkeypatch, said):
    put_old(folder)

    def no_locks(_fd, _operation):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    store = Store(folder, root=folder.parent)
    assert store.get("old").payload == PAYLOADS["old"]
    assert store.get("torn") is None
    with store.claim("a", patience=10) as alone:
        assert alone
    assert not store.put("a", b"code", label="", seconds=1)
    assert "no locks available" in said.pop()


def test_where_warnings_are_errors_nothing_is_raised(folder, faults, monkeypatch, caplog):
    monkeypatch.setattr(warning, "warnings", warnings)
    with warnings.catch_warnings(), faults.failing(FULL):
        warnings.simplefilter("error")
        assert not Store(folder, root=folder.parent).put("a", b"code", label="", seconds=1)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


READER = """
import os, sys
from pathlib import Path
from langchain_gemma_jax.compile_cache.store import Store
os.setgroups([]), os.setgid(12345), os.setuid(12345)
store = Store(Path(sys.argv[1]))
print(store.get("a").payload, store.put("b", b"code", label="", seconds=1), store.get("a").payload)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_really_is_read_only():
    """As a cache that was baked into an image."""
    with tempfile.TemporaryDirectory() as above:  # the folders of pytest are root's alone
        Path(above).chmod(0o755)
        folder = Path(above, "xla")
        assert Store(folder).put("a", b"code", label="", seconds=1)
        for path in [folder, *folder.iterdir()]:
            os.chown(path, 12345, 12345)
        folder.chmod(0o500)
        done = subprocess.run([sys.executable, "-c", READER, str(folder)], capture_output=True, text=True, check=False)
    assert done.stdout == "b'code' False b'code'\n", done.stderr
    assert done.stderr == "", "it was made read-only: nothing is wrong, and nobody is warned"
