"""A folder of prefixes that many machines mount: what one wrote another reads, and nothing wrong is ever used."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache import warning
from langchain_gemma_jax.engine.prefix_store import prefix_folder
from langchain_gemma_jax.engine.prefix_store.prefix_file import header_bytes, packed
from langchain_gemma_jax.engine.prefix_store.prefix_folder import ABANDONED_SECONDS, PrefixFolder
from langchain_gemma_jax.engine.prefix_store.prefix_names import family_name
from langchain_gemma_jax.engine.prefix_store.sealing import Digests
from langchain_gemma_jax.private import folder as folders
from langchain_gemma_jax.private import kept_files
from tests.compile_cache.faults import BROKEN, FULL, QUOTA, READ_ONLY
from tests.engine.prefix_store.example_prefixes import (
    SCOPE,
    blocks_of,
    found_right,
    header_of,
    keys_of,
    put,
    shared_in,
)

pytest.importorskip("cryptography")

REPOSITORY = Path(__file__).parents[3]
WRITER = [sys.executable, "-m", "tests.engine.prefix_store.example_prefixes"]


@pytest.fixture
def shared(tmp_path) -> Path:
    """A folder that anybody may write to, as an operator may have made it."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def on(shared, tmp_path):
    """``on("a")``: the store of a machine."""

    def on(machine: str = "a", cap: int | None = None, **how):
        return shared_in(shared, tmp_path / machine, cap, **how)

    return on


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def forget_warnings() -> None:
    for lock in warning._warned.values():
        if lock.locked():
            lock.release()


def test_what_one_machine_wrote_another_reads_and_no_other_key_model_or_scope(shared, on):
    first, second = on("a"), on("b")
    put(first, 1)
    second.refresh()
    assert found_right(second, 1)
    assert found_right(on("c"), 1)
    others = on("a", key=b"another key, of thirty-two bytes"), on("a", family=family_name("another model", "x"))
    for other in others:
        assert not found_right(other, 1)
        assert other._folder.counts.prefixes_rejected == 0, "not even a header is read"
    assert second.find("another", keys_of(1), 0) is None
    # A prefix that is there already is not written twice; each machine goes on with its own.
    before = (shared / names_in(shared)[0]).stat()
    put(second, 1)
    assert (shared / names_in(shared)[0]).stat().st_ino == before.st_ino
    for other in others:
        put(other, 1)
        assert found_right(other, 1)
    assert len(names_in(shared)) == 3
    assert found_right(on("d"), 1)


def test_a_folder_is_looked_at_again_even_if_it_does_not_tell_that_it_changed(shared, on, monkeypatch):
    first, second = on("a"), on("b")
    clock = [time.monotonic()]
    monkeypatch.setattr(prefix_folder.time, "monotonic", lambda: clock[0])
    second.refresh()
    assert second.fresh
    facts = shared.stat()
    put(first, 1)
    os.utime(shared, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    clock[0] += 2 * prefix_folder.LOOK_SECONDS
    assert not second.fresh


def test_files_and_folders_may_be_others_and_links_may_not(shared, on, tmp_path, monkeypatch):
    name = put(on("a"), 1)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    (shared / name).chmod(0o666)
    assert found_right(on("b"), 1)
    elsewhere = tmp_path / "elsewhere"
    (shared / name).rename(elsewhere)
    (shared / name).symlink_to(elsewhere)
    assert not found_right(on("b"), 1)


@pytest.mark.parametrize("error", [FULL, QUOTA, BROKEN, READ_ONLY], ids=errno.errorcode.get)
def test_a_folder_that_takes_no_more_is_still_read(shared, on, faults, said, error):
    put(on("a"), 1)
    second = on("b")
    with faults.failing(error):
        for seed in (2, 3):
            assert put(second, seed) is None
        assert found_right(second, 1)
    assert not second.writes
    message = said.pop()
    assert os.strerror(error) in message
    assert "prefix_folder" in message
    assert not said
    assert names_in(shared) == [each for each in names_in(shared) if each.endswith(".prefix")]


def test_whichever_call_of_a_write_fails_there_is_no_half_file(shared, on, faults, said):
    failed = set()
    for first in range(1, 40):
        stored = on("a")
        with faults.failing(FULL, first, first):
            put(stored, 2)
        failed |= {*faults.failed}
        said.clear()
        forget_warnings()
        assert [name for name in names_in(shared) if not name.endswith(".prefix")] == []
        fresh = on("b")
        found_right(fresh, 2)
        assert fresh._folder.counts.prefixes_rejected == 0
        if not faults.failed:
            break
        for name in names_in(shared):
            (shared / name).unlink()
    assert failed == {"open", "write", "fchmod", "replace"}


def test_a_folder_that_is_not_there_is_left_alone_with_one_warning(tmp_path, said):
    stored = shared_in(tmp_path / "nowhere", tmp_path / "a")
    assert put(stored, 1) is None
    assert not found_right(stored, 1)
    assert "nowhere cannot be used" in said.pop()
    assert not said
    assert not (tmp_path / "nowhere").exists(), "an unmounted folder is not written to"


def test_what_cannot_be_deleted_is_read_once_and_no_more(shared, on, monkeypatch):
    name = put(on("a"), 1)
    whole = (shared / name).read_bytes()
    at = header_bytes(whole)  # where the first block begins
    (shared / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    monkeypatch.setattr(folders.Folder, "remove", lambda *_: (_ for _ in ()).throw(OSError(READ_ONLY, "no")))
    stored = on("b")
    for _ in range(3):
        assert not found_right(stored, 1)
        stored.refresh()
    assert stored._folder.counts.prefixes_rejected == 1
    assert (shared / name).exists()
    put(stored, 1)
    assert found_right(stored, 1), "a writer puts a whole one in its place"
    assert found_right(on("c"), 1)


def damaged(whole: bytes, dice: random.Random) -> bytes:
    """A file that was flipped, cut off, made longer, or moved about."""
    at, size = dice.randrange(len(whole)), dice.randrange(1, 64)
    return dice.choice(
        [
            whole[:at] + bytes([whole[at] ^ (1 << dice.randrange(8))]) + whole[at + 1 :],
            whole[:at],
            whole + bytes(size),
            whole[:at] + bytes(size) + whole[at + size :],
            whole[:at] + whole[at + size :] + whole[at : at + size],
            b"",
        ]
    )


def damage(shared, on, count) -> None:
    """Damage a file so many times. It is never used wrongly, and the next writer makes it whole.

    A block that a prefix does not need is not looked at, so some of the damaged files are still of use.
    """
    name = put(on("a"), 1)
    whole = (shared / name).read_bytes()
    dice, used = random.Random(0), 0
    for _ in range(count):
        (shared / name).write_bytes(damaged(whole, dice))
        used += found_right(on("b"), 1)  # each number is compared where it is found
    assert used < count / 3
    (shared / name).write_bytes(whole[:100])
    assert not found_right(on("b"), 1)
    put(on("a"), 1)
    assert found_right(on("b"), 1)


def test_a_damaged_file_is_never_used(shared, on):
    damage(shared, on, 40)


@pytest.mark.slow
def test_of_a_thousand_damaged_files_none_is_used(shared, on):
    damage(shared, on, 1000)


def test_who_has_no_key_can_forge_nothing(shared, on):
    """Not a file of digests under the right name, nor another prefix's file, nor a header without blocks."""
    stored = on("a")
    one, two = put(stored, 1), put(stored, 2)
    blocks = blocks_of(2)
    forged = packed(header_of(stored.names, 1, blocks), blocks, Digests())
    (shared / one).write_bytes(b"".join(forged))
    assert not found_right(on("b"), 1)
    (shared / one).write_bytes((shared / two).read_bytes())
    assert not found_right(on("b"), 1)
    assert found_right(on("b"), 2)
    empty = header_of(stored.names, 1, [])
    (shared / one).write_bytes(b"".join(packed(empty, [], Digests())))
    fresh = on("b")
    assert fresh.find(SCOPE, keys_of(1), 0) is None


def test_one_machine_keeps_the_budget_and_two_would_do_no_harm(shared, on, monkeypatch):
    monkeypatch.setattr(prefix_folder, "COLLECT_SECONDS", -1.0)
    put(on("a"), 0)
    cap = 5 * (shared / names_in(shared)[0]).stat().st_size + 100
    plain, collector = on("b"), on("c", cap)
    for seed in range(1, 12):
        put(plain, seed)
    assert len(names_in(shared)) == 12, "who has no budget deletes nothing"
    old, new = shared / ".0123.tmp", shared / ".4567.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * ABANDONED_SECONDS,) * 2)
    put(collector, 20)
    assert (old.exists(), new.exists()) == (False, True)
    assert len(names_in(shared)) == 6
    assert collector._folder.counts.prefixes_evicted == 8
    put(on("d", cap), 20)
    assert len(names_in(shared)) == 6


def test_no_digest_of_a_model_is_believed_that_others_could_have_written(shared, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(prefix_folder, "model_digest", lambda files, folder, **_: asked.append(folder.path))
    PrefixFolder(shared, None, tmp_path / "mine").digest_of(None, thoroughly=True)
    assert asked == [tmp_path / "mine"]


def test_where_a_machine_has_no_place_of_its_own_nothing_is_said(shared, tmp_path, said):
    (tmp_path / "file").write_text("")
    folder = PrefixFolder(shared, None, tmp_path / "file" / "prefixes")
    assert folder._digests.folder() is None
    assert folder.files.folder() is not None
    assert not said


def test_no_lock_is_held(shared, on, monkeypatch):
    monkeypatch.setattr(kept_files, "try_hold", None)
    monkeypatch.setattr(prefix_folder, "take", None)
    assert put(on("a", 10_000), 1)


def kills(shared, tmp_path, count, seconds) -> int:
    """Kill one of two machines that write and read, so many times. Gives how many prefixes were found, all right."""
    found = 0
    for number in range(count):
        command = [*WRITER, str(shared), str(100 * (number // 2)), "100", str(2**30), "4000"]
        both = [
            subprocess.Popen([*command, str(tmp_path / machine)], cwd=REPOSITORY, stdout=subprocess.PIPE)
            for machine in "ab"
        ]
        for each in both:
            each.stdout.readline()
        time.sleep(seconds * number / count)
        for each in both:
            each.kill()
            each.wait()
            each.stdout.close()
        stored = shared_in(shared, tmp_path / "c")
        first = 100 * (number // 2)
        found += sum(found_right(stored, seed, 4000) for seed in range(first, first + 100))
        assert stored._folder.counts.prefixes_rejected == 0, "what is there is whole"
    return found


@pytest.mark.slow
def test_machines_that_are_killed_at_fifty_moments_leave_nothing_wrong(shared, tmp_path):
    assert kills(shared, tmp_path, 25, 0.25) > 25
