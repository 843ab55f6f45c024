"""Files are written whole, even where another process takes an unfinished one for a dead writer's."""

from __future__ import annotations

import errno
import fcntl

import pytest

from langchain_gemma_jax.compile_cache.sweep import sweep
from langchain_gemma_jax.private.folder import open_folder
from langchain_gemma_jax.private.writing import write_whole


@pytest.fixture
def folder(root):
    return open_folder(root, root)


def test_a_sweep_between_the_making_and_the_lock_does_no_harm(folder, monkeypatch):
    real = fcntl.flock
    swept = []

    def late(fd, operation):
        if not swept:
            swept.append(1)
            sweep(folder, 10**6)  # finds a temporary file that nobody has locked
        return real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    facts = write_whole(folder, "file", b"one", b"", b" two")
    assert folder.read("file", 100) == b"one two"
    assert facts.st_ino == folder.stat("file").st_ino
    assert [name for name in folder.names() if name.endswith(".tmp")] == []


def test_a_file_system_where_that_always_happens_is_given_up(folder, monkeypatch):
    def busy(_fd, _operation):
        raise BlockingIOError(errno.EAGAIN, "busy")

    monkeypatch.setattr(fcntl, "flock", busy)
    with pytest.raises(OSError, match="deleted at once"):
        write_whole(folder, "file", b"x")
    assert folder.names() == []


def test_nobody_sees_it_before_it_is_whole(folder, monkeypatch):
    write_whole(folder, "file", b"old")
    seen = []
    real = folder.replace
    monkeypatch.setattr(folder, "replace", lambda *names: (seen.append(folder.read("file", 100)), real(*names)))
    write_whole(folder, "file", b"new")
    assert seen == [b"old"]
    assert folder.read("file", 100) == b"new"
