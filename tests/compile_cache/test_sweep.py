"""The sweep: what stays, what goes, and in which order."""

from __future__ import annotations

import json
import os
import time

import pytest

from langchain_gemma_jax.compile_cache.entry import digest_of, file_of, seal, unseal
from langchain_gemma_jax.compile_cache.sweep import MANIFEST, Swept, read_manifest, sweep
from langchain_gemma_jax.private import file_locks
from langchain_gemma_jax.private.file_locks import give_back, take, try_hold
from langchain_gemma_jax.private.folder import open_folder
from tests.compile_cache.faults import watch

CAP = 10**6


@pytest.fixture
def folder(root):
    return open_folder(root, root)


def add(folder, name, payload=b"code", used=None):
    """An entry as another process writes it. Gives its file name."""
    file = file_of(name)
    path = folder.path / file
    path.write_bytes(seal(name, payload) + payload)
    path.chmod(0o600)
    if used is not None:
        os.utime(path, (used, path.stat().st_mtime))
    return file


def flip(path, byte=-1):
    data = bytearray(path.read_bytes())
    data[byte] ^= 4
    facts = path.stat()
    path.write_bytes(data)
    return facts


def files(folder):
    return set(folder.names()) - {MANIFEST}


def test_good_entries_are_kept_and_listed(folder):
    kept = {add(folder, "a"), add(folder, "b", b"")}
    assert sweep(folder, CAP) == Swept()
    assert files(folder) == kept
    listed = read_manifest(folder)
    assert listed.keys() == kept
    for file, (digest, size, changed, inode) in listed.items():
        facts = (folder.path / file).stat()
        assert (digest, size) == (digest_of((folder.path / file).read_bytes()), facts.st_size)
        assert (changed, inode) == (facts.st_mtime_ns, facts.st_ino)


def test_listed_entries_are_not_read_again(folder):
    file = add(folder, "a")
    with watch.on() as seen:
        sweep(folder, CAP)
    assert f"open {file}" in seen
    manifest = (folder.path / MANIFEST).stat()
    with watch.on() as seen:
        sweep(folder, CAP)
    assert f"open {file}" not in seen
    assert (folder.path / MANIFEST).stat().st_ino == manifest.st_ino, "nor is the manifest written again"


def test_what_this_process_wrote_is_not_read_to_be_listed(folder):
    file = add(folder, "a")
    facts = (folder.path / file).stat()
    known = ("feed" * 16, facts.st_size, facts.st_mtime_ns, facts.st_ino)
    with watch.on() as seen:
        sweep(folder, CAP, {file: known})
    assert f"open {file}" not in seen
    assert read_manifest(folder) == {file: known}


@pytest.mark.parametrize("change", ["size", "time", "inode"])
def test_an_entry_that_is_not_as_listed_is_read(folder, change):
    file = add(folder, "a")
    sweep(folder, CAP)
    path = folder.path / file
    facts = flip(path)
    if change == "size":
        path.write_bytes(path.read_bytes() + b"x")
    if change == "inode":
        path.write_bytes(data := path.read_bytes())
        path.rename(folder.path.parent / "old")  # so that its inode is not used again
        path.write_bytes(data)
        path.chmod(0o600)
    if change != "time":
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert sweep(folder, CAP) == Swept(rejected=(file,))
    assert files(folder) == set()
    assert read_manifest(folder) == {}


@pytest.mark.parametrize("size", [0, 1, 0.25, 0.5, -1])
def test_torn_entries_are_deleted(folder, size):
    good, torn = add(folder, "a"), add(folder, "b", b"x" * 5000)
    sweep(folder, CAP)
    path = folder.path / torn
    whole = path.stat().st_size
    os.truncate(path, size if size in {0, 1} else whole - 1 if size < 0 else int(whole * size))
    assert sweep(folder, CAP).rejected == (torn,)
    assert files(folder) == {good}


def linked(folder, file):
    real = folder.path.parent / "real"
    (folder.path / file).rename(real)
    (folder.path / file).symlink_to(real)


def pipe(folder, file):
    (folder.path / file).unlink()
    os.mkfifo(folder.path / file)


def renamed(folder, file):
    (folder.path / file).rename(folder.path / file_of("another"))


def monster(folder, file):
    os.truncate(folder.path / file, 2**40)


SPOILT = {
    "linked": linked,
    "dangling": lambda folder, file: (linked(folder, file), (folder.path.parent / "real").unlink()),
    "pipe": pipe,
    "group-writable": lambda folder, file: (folder.path / file).chmod(0o620),
    "world-writable": lambda folder, file: (folder.path / file).chmod(0o602),
    "renamed": renamed,
    "a monster": monster,
}


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("how", SPOILT)
def test_what_only_looks_like_an_entry_is_deleted(folder, how, listed):
    good, bad = add(folder, "a"), add(folder, "b")
    if listed:
        sweep(folder, CAP)
    SPOILT[how](folder, bad)
    assert len(sweep(folder, CAP).rejected) == 1
    assert files(folder) == {good}
    if how == "linked":
        assert (folder.path.parent / "real").exists(), "what a link leads to is not ours to delete"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("listed", [False, True])
def test_the_entries_of_others_are_deleted(folder, listed):
    file = add(folder, "a")
    if listed:
        sweep(folder, CAP)
    os.chown(folder.path / file, 12345, -1)
    assert sweep(folder, CAP).rejected == (file,)
    assert files(folder) == set()


def test_unknown_files_are_deleted_and_folders_left_alone(folder):
    for name in ["notes.txt", ".hidden", "jit_f-123-cache", "x.entry2"]:
        (folder.path / name).write_bytes(b"")
    (folder.path / "dangling").symlink_to("nowhere")
    (folder.path / "folder").mkdir()
    (folder.path / f"{'0' * 40}.entry").mkdir()
    (folder.path / "folder" / "inside").write_bytes(b"")
    assert sweep(folder, CAP) == Swept()
    assert files(folder) == {"folder", f"{'0' * 40}.entry"}
    assert (folder.path / "folder" / "inside").exists()


@pytest.mark.parametrize("name", ["0123.claim", ".0123.tmp"])
def test_only_the_dead_lose_their_claims_and_temporary_files(folder, name):
    hold = try_hold(folder, name, os.O_RDWR | os.O_CREAT)
    sweep(folder, CAP)
    assert files(folder) == {name}, "its holder lives"
    hold.release()
    sweep(folder, CAP)
    assert files(folder) == set()


@pytest.mark.parametrize("name", ["0123.claim", ".0123.tmp"])
def test_what_only_looks_like_a_claim_or_a_temporary_file_is_deleted(folder, name):
    path = folder.path / name
    for make in [
        lambda: path.symlink_to("nowhere"),
        lambda: os.mkfifo(path),
        lambda: (path.touch(), path.chmod(0o666)),
    ]:
        make()
        assert sweep(folder, CAP) == Swept()
        assert files(folder) == set()


def test_one_sweeps_at_a_time_and_nobody_waits(folder, monkeypatch):
    (folder.path / "unknown").write_bytes(b"")
    hold = take(folder, "sweep.claim", patience=0)
    monkeypatch.setattr(file_locks.time, "sleep", lambda _: pytest.fail("it waits"))
    assert sweep(folder, CAP) == Swept()
    monkeypatch.undo()
    assert "unknown" in files(folder)
    give_back(folder, "sweep.claim", hold)
    sweep(folder, CAP)
    assert files(folder) == set()


def damaged(text):
    def write(path):
        path.write_bytes(text)

    return write


def of_another_name(path):
    payload = unseal(path.read_bytes()).payload
    path.write_bytes(seal("another", payload) + payload)


def sealed_otherwise(payload):
    return damaged(seal(MANIFEST, payload) + payload)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        damaged(b""),
        damaged(b"{}"),
        lambda path: flip(path) and None,
        lambda path: flip(path, 20) and None,
        lambda path: os.truncate(path, 50),
        of_another_name,
        sealed_otherwise(b"[1]"),
        sealed_otherwise(b'{"a": 1}'),
        sealed_otherwise(b'{"a": [1, 2]}'),
        sealed_otherwise(b"not json"),
        lambda path: path.chmod(0o666),
        lambda path: (path.rename(path.parent.parent / "real"), path.symlink_to(path.parent.parent / "real")),
    ],
)
def test_a_damaged_manifest_is_made_anew(folder, damage):
    good, bad = add(folder, "a"), add(folder, "b")
    sweep(folder, CAP)
    facts = flip(folder.path / bad)
    os.utime(folder.path / bad, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    damage(folder.path / MANIFEST)
    assert sweep(folder, CAP).rejected == (bad,), "nothing is trusted that a damaged manifest might have listed"
    assert read_manifest(folder).keys() == {good}
    assert files(folder) == {good}


def test_the_least_recently_used_go_first(folder):
    now = time.time()
    used = {add(folder, f"program {age}", b"x" * 1000, used=now - age): age for age in [50, 10, 40, 20, 30]}
    size = sum((folder.path / file).stat().st_size for file in used)
    assert sweep(folder, size) == Swept(), "as large as allowed"
    assert sweep(folder, size - 1).evicted == 1
    assert sweep(folder, size // 2).evicted == 2
    assert {used[file] for file in files(folder)} == {10, 20}
    assert read_manifest(folder).keys() == files(folder)


def test_what_was_just_written_is_not_what_goes(folder):
    now = time.time()
    old, new = add(folder, "a", used=now), add(folder, "b", used=now - 1000)
    facts = (folder.path / new).stat()
    known = {new: ("0" * 64, facts.st_size, facts.st_mtime_ns, facts.st_ino)}
    assert sweep(folder, facts.st_size, known).evicted == 1
    assert files(folder) == {new} != {old}


def test_vanished_files_are_normal(folder, monkeypatch):
    gone, kept = add(folder, "a"), add(folder, "b")
    (folder.path / "unknown").write_bytes(b"")
    names = folder.names()
    (folder.path / gone).unlink()
    (folder.path / "unknown").unlink()
    monkeypatch.setattr(type(folder), "names", lambda _: [*names, "0.claim", ".0.tmp"])
    assert sweep(folder, CAP) == Swept()
    assert read_manifest(folder).keys() == {kept}


def test_looking_at_entries_does_not_make_them_look_used(folder):
    if not hasattr(os, "O_NOATIME"):
        pytest.skip("this system cannot read a file without marking it")
    file = add(folder, "a", used=1000)
    sweep(folder, CAP)
    assert (folder.path / file).stat().st_atime == 1000


def test_the_manifest_is_json_that_other_programs_can_read(folder):
    file = add(folder, "a")
    sweep(folder, CAP)
    data = (folder.path / MANIFEST).read_bytes()
    assert json.loads(data[data.rindex(b'{"') :]).keys() == {file}
