"""The store: what was put is what is got, across stores, threads and processes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache.entry import file_of, seal
from langchain_gemma_jax.compile_cache.store import Counts, Entry, Store
from langchain_gemma_jax.private import kept_files
from tests.compile_cache import several
from tests.compile_cache.faults import watch
from tests.compile_cache.several import tell
from tests.counted import lines

PAYLOAD = random.Random(1).randbytes(5000)


@pytest.fixture
def store(root):
    return Store(root)


def put(store, name="a", payload=PAYLOAD, seconds=1.5):
    return store.put(name, payload, label=f"the program {name}", seconds=seconds)


def path_of(store, name="a"):
    return store.folder / file_of(name)


def change(path, data):
    """As a bad disk does: nobody can tell from the outside."""
    facts = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    change(path, data)


def test_making_one_touches_nothing(root):
    with watch.on() as seen:
        Store(root)
    assert seen == []
    assert not root.exists()


@pytest.mark.parametrize("payload", [b"", b"x", PAYLOAD, bytes(3_000_000)])
def test_what_was_put_is_got(root, payload):
    assert put(Store(root), payload=payload)
    assert Store(root).get("a") == Entry("a", "the program a", 1.5, payload)


def test_what_was_not_put_is_not_got(store):
    assert store.get("a") is None
    put(store, "b")
    assert store.get("a") is None
    assert store.counts == Counts(misses=2, written=1)


def test_the_last_one_put_is_got(store):
    put(store)
    put(store, payload=b"new", seconds=3)
    assert store.get("a").payload == b"new"
    assert len(list(store.folder.glob("*.entry"))) == 1
    assert store.counts == Counts(hits=1, written=2, seconds_saved=3)


def test_counts_add_up(store):
    put(store, seconds=1.5)
    put(store, "b", seconds=2)
    for name in ["a", "b", "a", "c"]:
        store.get(name)
    assert store.counts == Counts(hits=3, misses=1, written=2, seconds_saved=5)


def test_the_bytes_that_were_verified_are_the_bytes_that_are_used(store):
    put(store)
    with watch.on() as seen:
        assert store.get("a").payload == PAYLOAD
    assert [event for event in seen if event.startswith("open")] == [f"open {file_of('a')}"], "one look at the file"


def test_a_get_marks_the_use_and_nothing_else(store):
    put(store)
    path = path_of(store)
    os.utime(path, ns=(1000, path.stat().st_mtime_ns))
    before = path.stat()
    assert store.get("a")
    after = path.stat()
    assert after.st_atime_ns > 1000
    assert after.st_mtime_ns == before.st_mtime_ns, "else the manifest would not know it again"
    again = Store(store.folder)
    with watch.on() as seen:
        again.get("b")
    assert f"open {file_of('a')}" not in seen


# Damage


def cut(share):
    def damage(path):
        data = path.read_bytes()
        change(path, data[: {0: 0, 1: 1, -1: len(data) - 1}.get(share, int(share * len(data)))])

    return damage


def of_another_name(path):
    other = Store(path.parent)
    put(other, "other")
    change(path, path_of(other, "other").read_bytes())


def linked(path):
    path.symlink_to(path.rename(path.parent.parent / "real"))


DAMAGE = {
    "0 bytes": cut(0),
    "1 byte": cut(1),
    "25 %": cut(0.25),
    "50 %": cut(0.5),
    "all but a byte": cut(-1),
    "a flipped bit": flip,
    "of another name": of_another_name,
    "a link": linked,
    "world-writable": lambda path: path.chmod(0o606),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
    "a monster": lambda path: os.truncate(path, 2**40),
}


@pytest.mark.parametrize("opened", [True, False], ids=["found by a read", "found by a sweep"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_deleted_and_healed_by_the_next_put(root, damage, opened):
    put(Store(root))
    store = Store(root)
    if opened:
        store.get("nothing")
    DAMAGE[damage](path_of(store))
    if not opened and damage in {"a flipped bit", "of another name"}:
        (root / "manifest").unlink()  # it vouches for what looks unchanged, until that is read
    assert store.get("a") is None
    assert not path_of(store).exists()
    assert store.counts.rejected == 1
    assert put(store)
    for healed in [store, Store(root)]:
        assert healed.get("a").payload == PAYLOAD
        assert healed.counts.rejected == (healed is store)


def test_a_listed_entry_is_checked_again_when_it_is_read(root):
    put(Store(root))
    store = Store(root)
    flip(path_of(store))
    assert store.get("a") is None
    assert store.counts == Counts(misses=1, rejected=1)


def test_a_thousand_flipped_bits_on_disk_are_rejected(root):
    """End to end, through ``get``: each is found, deleted and healed."""
    store = Store(root)
    store.get("a")
    put(store, payload=PAYLOAD[:200])
    path, chance = path_of(store), random.Random(3)
    whole = path.read_bytes()
    for _ in range(1000):
        data = bytearray(whole)
        bit = chance.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        path.chmod(0o600)
        assert store.get("a") is None, f"bit {bit}"
        assert not path.exists()
    assert store.counts.rejected == 1000
    assert put(store, payload=PAYLOAD[:200])
    assert store.get("a").payload == PAYLOAD[:200]


@pytest.mark.parametrize("kind", ["*.entry", "manifest", "*.claim", ".*.tmp", "*"])
def test_whichever_files_are_deleted_the_next_put_heals(root, kind):
    store = Store(root)
    put(store)
    put(store, "b")
    with store.claim("c", patience=0):
        (root / ".0.tmp").write_bytes(b"")
        gone = list(root.glob(kind))
        assert gone
        for path in gone:
            path.unlink()
        for each in [store, Store(root)]:
            assert put(each)
            assert put(each, "b")
            assert each.get("a").payload == each.get("b").payload == PAYLOAD
            assert each.counts.rejected == 0
    assert [path for path in root.iterdir() if path.suffix not in {".entry", ""}] == []


def test_a_discarded_entry_is_gone(store):
    put(store)
    put(store, "b")
    store.discard("a")
    assert not path_of(store).exists()
    assert store.counts.rejected == 1
    assert (store.get("a"), store.get("b").payload) == (None, PAYLOAD)
    store.discard("never there")


# The cap


def test_the_least_recently_used_are_evicted(root):
    put(Store(root), "size")
    size = next(root.glob("*.entry")).stat().st_size
    store = Store(root, cap=3 * size + 100)
    store.discard("size")
    for name in "abc":
        put(store, name)
        time.sleep(0.01)  # the clock of a file system may be that coarse
    assert store.get("a")
    time.sleep(0.01)
    put(store, "d")
    assert store.counts.evicted == 1
    assert {name for name in "abcd" if path_of(store, name).exists()} == {"a", "c", "d"}
    time.sleep(0.01)
    put(store, "e", 2 * PAYLOAD)
    assert {name for name in "abcde" if path_of(store, name).exists()} == {"d", "e"}
    assert store.counts.evicted == 3


def test_a_smaller_cap_is_kept_at_once(root):
    for name in "abc":
        put(Store(root), name)
    size = path_of(Store(root)).stat().st_size
    store = Store(root, cap=size)
    store.get("nothing")
    assert len(list(root.glob("*.entry"))) == 1
    assert store.counts.evicted == 2


def test_what_the_cap_has_no_room_for_is_not_written(root):
    store = Store(root, cap=1000)
    put(store, "small", b"x")
    assert not put(store)
    assert store.get("small"), "and nothing was evicted for it"
    assert store.counts == Counts(hits=1, written=1, seconds_saved=1.5)


# Upkeep


def test_entries_are_listed_by_use(root):
    store = Store(root)
    for name, payload in [("a", b"1"), ("b", b"22"), ("c", b"333")]:
        put(store, name, payload, seconds=len(payload))
        os.utime(path_of(store, name), (1000 - len(payload), path_of(store, name).stat().st_mtime))
    (root / "unknown").write_bytes(b"")
    (root / f"{'0' * 40}.entry").mkdir()
    found = store.entries()
    assert [(one.name, one.label, one.seconds, one.last_used) for one in found] == [
        ("a", "the program a", 1, 999),
        ("b", "the program b", 2, 998),
        ("c", "the program c", 3, 997),
    ]
    assert [one.bytes for one in found] == [path_of(store, name).stat().st_size for name in "abc"]


def test_verify_finds_what_only_reading_can_find(root):
    put(Store(root))
    put(Store(root), "b")
    store = Store(root)
    assert store.verify() == []
    flip(path_of(store))
    assert store.verify() == [file_of("a")]
    assert not path_of(store).exists()
    assert store.counts.rejected == 1
    assert store.get("b").payload == PAYLOAD


def test_verify_tells_also_what_the_sweep_found(root):
    put(Store(root))
    path_of(Store(root)).write_bytes(b"torn")
    assert Store(root).verify() == [file_of("a")]


def test_verify_finds_an_entry_that_was_sealed_anew_in_its_place(root):
    store = Store(root)
    put(store)
    listed = (root / "manifest").read_bytes()
    path = path_of(store)
    facts, inode = path.stat(), path.stat().st_ino
    elsewhere = Store(root.parent / "elsewhere")
    put(elsewhere, payload=PAYLOAD[::-1])
    change(path, path_of(elsewhere).read_bytes())
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (inode, facts.st_mtime_ns)
    assert (root / "manifest").read_bytes() == listed
    assert store.verify() == [file_of("a")]


def test_clear_leaves_what_others_are_at(root):
    store = Store(root)
    put(store)
    put(store, "b")
    (root / "0.claim").write_bytes(b"")
    (root / "folder.entry").mkdir()
    with store.claim("c", patience=0):
        assert store.clear() == 2
        assert sorted(path.suffix for path in root.iterdir()) == [".claim", ".entry"]
    assert [path.name for path in root.iterdir()] == ["folder.entry"]
    assert store.get("a") is None
    assert put(store)
    assert store.get("a").payload == PAYLOAD


# Threads and processes


def test_threads_share_a_store(root):
    store = Store(root)
    ready = threading.Barrier(8)
    wrong = []

    def work(which):
        ready.wait()
        for step in range(10):
            name, payload = f"{which} {step % 3}", f"{which} {step}".encode() * 100
            if not put(store, name, payload, seconds=1) or store.get(name).payload != payload:
                wrong.append((which, step))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(which,)) for which in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert store.counts == Counts(hits=80, written=80, seconds_saved=80)


def test_counts_of_threads_add_up(store, monkeypatch):
    real = kept_files.replace

    def slow(counts, **more):
        time.sleep(0.001)
        return real(counts, **more)

    monkeypatch.setattr(kept_files, "replace", slow)
    threads = [threading.Thread(target=lambda: [store.get("a") for _ in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.counts.misses == 40


def test_the_folder_is_opened_once(root, monkeypatch):
    opened = []
    real = kept_files.open_folder

    def slow(*args):
        opened.append(1)
        time.sleep(0.05)
        return real(*args)

    monkeypatch.setattr(kept_files, "open_folder", slow)
    store = Store(root)
    threads = [threading.Thread(target=store.get, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [1]
    assert store.counts.misses == 8


@pytest.mark.long
def test_writers_that_are_killed_leave_only_what_is_right(tmp_path):
    result = tell(several.killed_writers, tmp_path / "xla", 100)
    assert result["wrong"] == 0
    assert result["torn"] > 0, "some died while they wrote"
    assert result["found"] > 50


# Speed


def test_a_get_takes_few_steps(store):
    put(store, payload=random.Random(2).randbytes(2**20))
    assert lines(lambda: store.get("a")) < 160


def test_opening_a_large_folder_takes_few_steps(root):
    store = Store(root)
    store.get("a")
    for index in range(300):
        path = root / file_of(f"program {index}")
        path.write_bytes(seal(f"program {index}", PAYLOAD) + PAYLOAD)
        path.chmod(0o600)
    assert Store(root).get("program 7"), "swept, and listed"
    assert lines(lambda: Store(root).get("a")) < 300 * 40


def test_importing_it_is_cheap():
    """Next to the package itself, it needs little of the standard library, and nothing of anybody else's."""
    code = (
        "import sys, langchain_gemma_jax; before = set(sys.modules); import langchain_gemma_jax.compile_cache.store; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    few = {"json", "_json", "hashlib", "_hashlib", "_blake2", "fcntl", "langchain_gemma_jax", "threading", "weakref"}
    assert set(done.stdout.split()) - few - {"_weakrefset", "_sha3", "_sha2", "__future__"} == set()
