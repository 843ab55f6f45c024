"""Kept files: what two stores share. Faults of the disk are tested with each of the two."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import pytest

from langchain_gemma_jax.private.folder import DamagedError, open_folder
from langchain_gemma_jax.private.kept_files import KeptFiles, Wording, evict, remove_unheld
from langchain_gemma_jax.private.writing import write_whole


@dataclass(frozen=True)
class Counts:
    rejected: int = 0
    read: int = 0


@pytest.fixture
def warned():
    return []


@pytest.fixture
def files(tmp_path, warned):
    wording = Wording(
        files="notes",
        unread="A note in {folder} cannot be read, and is written again",
        danger="Others could write in your name.",
        choose="set NOTES to a folder of your own",
        choose_unseen="set NOTES to a new folder",
        remedy="NOTES can name another folder.",
        warn=warned.append,
        warn_visible=warned.append,
    )
    return KeptFiles(tmp_path / "notes", wording, Counts(), prepare=lambda folder: warned.append(folder.path))


def damaged(folder):
    raise DamagedError("torn")


def refused(folder):
    raise OSError("no")


def test_the_folder_is_made_at_the_first_use_and_prepared_once(files, warned):
    assert not files.path.exists()
    folder = files.folder()
    assert folder is files.folder() is files.to_write()
    assert warned == [files.path]
    files.reopen()
    assert files.folder() is not folder
    assert warned == [files.path] * 2


def test_a_damaged_file_is_deleted_and_one_that_cannot_be_read_is_said(files, warned):
    for name in ("a", "b"):
        write_whole(files.folder(), name, name.encode())
    assert files.read("a", lambda folder: folder.read("a", 9)) == b"a"
    assert files.read("c", lambda folder: folder.read("c", 9)) is None
    assert files.read("a", damaged) is None
    files.count(read=1)
    assert files.counts == Counts(rejected=1, read=1)
    assert (files.facts("a"), files.facts("b").st_size) == (None, 1)
    warned.clear()
    assert files.read("b", refused) is None
    assert warned == [f"A note in {files.path} cannot be read, and is written again: no."]


def test_after_a_write_that_failed_files_are_read_alone(files, warned):
    write_whole(files.folder(), "a", b"a")
    warned.clear()
    with files.writing():
        refused(None)
    assert files.to_write() is None
    files.mark_used("a")
    files.remove("a")
    files.reject("a")
    assert files.read("a", lambda folder: folder.read("a", 9)) == b"a"
    (message,) = warned
    assert message == (
        f"No more notes are kept in {files.path}: no. Those that are there are still used. NOTES can name another "
        "folder."
    )


def test_a_folder_that_cannot_be_used_is_an_empty_one(files, warned):
    files.path.mkdir(0o770)
    files.path.chmod(0o770)
    assert (files.folder(), files.to_write(), files.facts("a"), files.clear("")) == (None, None, None, 0)
    files.reject("a")
    assert files.counts == Counts()
    (message,) = warned
    assert message.startswith(f"Notes are not kept: {files.path} can be written to by others (mode 0770). Others could")
    assert message.endswith("if it holds nothing else, or set NOTES to a folder of your own.")


def test_all_goes_but_folders_and_what_a_writer_holds(files):
    folder = files.folder()
    for name in ("a.note", "b.note", "list", "dead.claim"):
        write_whole(folder, name, b"x")
    (files.path / "c.note").mkdir()
    assert remove_unheld(folder, "gone") is None
    assert files.clear(".note") == 2
    assert folder.names() == ["c.note"]


def test_what_was_not_used_for_longest_goes_first_and_a_wrong_clock_keeps_nothing(tmp_path):
    folder = open_folder(tmp_path / "notes", tmp_path / "notes")
    now = time.time_ns()
    day = 86_400 * 10**9
    ages = {"old": -day, "new": 0, "older": -2 * day, "next month": 30 * day, "a server's clock, ahead": day // 24}
    for name, age in ages.items():
        write_whole(folder, name, b"12345")
        os.utime(tmp_path / "notes" / name, ns=(now + age, now + age))
    facts = {name: folder.stat(name) for name in folder.names()}
    assert evict(folder, facts, 0) == []
    assert evict(folder, facts, 11) == ["next month", "older", "old"]
    assert sorted(folder.names()) == ["a server's clock, ahead", "new"]
