"""Which folders are used: those that nobody else can write to. In all others nothing is so much as opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from langchain_gemma_jax.cli.verbs.cache import stores
from langchain_gemma_jax.compile_cache.platform import platform_folder
from langchain_gemma_jax.compile_cache.store import Store
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.private import folder as folder_module
from langchain_gemma_jax.private.folder import DamagedError, _without_system_link, blemish, open_folder
from tests.compile_cache.faults import READ_ONLY, watch

STRANGER = 12345
with_link_of_root = pytest.mark.skipif(
    not Path("/bin").is_symlink() or Path("/bin").lstat().st_uid != 0, reason="this system has no such link"
)
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def below(root):
    return root / "jaxlib-1" / "cpu"


def store_in(root):
    return Store(below(root), root=root)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def aside(path):
    """The same folder somewhere else, and nothing in its place."""
    return path.rename(path.with_name(f"{path.name}-aside"))


def linked(path, target):
    path.symlink_to(target)
    return path


# Hostile shapes: each is made of a good cache with an entry in it. What is given back is the root to use, if another.


def writable(part, bits):
    return lambda root: (root / part).chmod(bits)


def root_linked(root):
    root.symlink_to(aside(root))


def platform_linked(root):
    path = root / "jaxlib-1"
    path.symlink_to(aside(path))


def folder_linked(root):
    path = below(root)
    path.symlink_to(aside(path))


def parent_linked(root):
    return linked(root.parent.with_name(f"{root.parent.name}-link"), root.parent) / root.name


def parents_parent_linked(root):
    return linked(root.parent.with_name(f"{root.parent.name}-up"), root.parent.parent) / root.parent.name / root.name


def root_dangling(root):
    aside(root)
    root.symlink_to(root.with_name("nowhere"))


def folder_dangling(root):
    aside(below(root))
    below(root).symlink_to("nowhere")


def file_as_root(root):
    aside(root)
    root.write_bytes(b"")


def file_as_folder(root):
    aside(below(root))
    below(root).write_bytes(b"")


def guessable_name(root):
    root.parent.chmod(0o1777)


def parent_writable(bits):
    return lambda root: root.parent.chmod(bits)


def parents_parent_writable(root):
    inner = root.parent / "inner"
    inner.mkdir(0o700)
    root.rename(inner / root.name)
    root.parent.chmod(0o777)
    return inner / root.name


HOSTILE = {
    "root 0777": writable("", 0o777),
    "root 0770": writable("", 0o770),
    "root 0702": writable("", 0o702),
    "root sticky": writable("", 0o1777),
    "platform 0777": writable("jaxlib-1", 0o777),
    "folder 0770": writable("jaxlib-1/cpu", 0o770),
    "folder sticky": writable("jaxlib-1/cpu", 0o1777),
    "root linked": root_linked,
    "platform linked": platform_linked,
    "folder linked": folder_linked,
    "parent linked": parent_linked,
    "parent's parent linked": parents_parent_linked,
    "root dangling": root_dangling,
    "folder dangling": folder_dangling,
    "a file as root": file_as_root,
    "a file as folder": file_as_folder,
    "a name that others can guess": guessable_name,
    "parent 0777": parent_writable(0o777),
    "parent 0770": parent_writable(0o770),
    "parent's parent 0777": parents_parent_writable,
}
GIVEN_AWAY = {"root": ".", "platform": "jaxlib-1", "folder": "jaxlib-1/cpu", "parent": ".."}


@pytest.fixture
def cache(root):
    """A good one, with an entry that a hostile one must not lead to."""
    root = root.parent / "home" / root.name
    store = store_in(root)
    assert store.put("bait", b"code", label="", seconds=1)
    yield root
    root.parent.chmod(0o700)


def refused(root, said):
    """Nothing was opened, listed or changed, everything works as without a cache, and one warning says so."""
    store = store_in(root)
    with watch.on() as seen:
        assert store.get("bait") is None
        assert store.put("more", b"code", label="", seconds=1) is False
        with store.claim("bait", patience=60) as alone:
            assert alone
        store.discard("bait")
        assert (store.entries(), store.verify(), store.clear()) == ([], [], 0)
        assert store_in(root).get("bait") is None
    assert seen == []
    assert (store.counts.hits, store.counts.misses, store.counts.written) == (0, 1, 0)
    message = said.pop()
    assert said == []
    return message


@pytest.mark.parametrize("shape", HOSTILE)
def test_hostile_shapes_are_refused(cache, said, shape):
    bait = next(below(cache).glob("*.entry"))
    inode, before = bait.stat().st_ino, bait.read_bytes()
    root = HOSTILE[shape](cache) or cache
    message = refused(root, said)
    assert "are not kept" in message
    assert ("is a symbolic link" in message) == ("linked" in shape or "dangling" in shape)
    assert "GEMMA_JAX_COMPILE_CACHE" in message
    assert str(root.parent.parent) in message
    kept = [path for path in cache.parent.parent.rglob("*.entry") if path.stat().st_ino == inode]
    assert [path.read_bytes() for path in kept][:1] == [before]


def test_a_good_folder_is_read_as_the_watch_can_tell(cache):
    with watch.on() as seen:
        assert store_in(cache).get("bait").payload == b"code"
    assert any(event.startswith("os.listdir") for event in seen)
    assert any(event.endswith(".entry") for event in seen)


def test_the_folder_of_another_user_is_refused(cache, said, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert "belongs to user" in refused(cache, said)


@as_root
@pytest.mark.parametrize("part", GIVEN_AWAY)
def test_a_folder_that_was_given_away_is_refused(cache, said, part):
    os.chown(cache / GIVEN_AWAY[part], STRANGER, -1)
    assert f"belongs to user {STRANGER}" in refused(cache, said)


@pytest.mark.parametrize("umask", [0, 0o022, 0o077, 0o777])
def test_folders_are_made_private_whatever_the_umask(root, umask):
    old = os.umask(umask)
    try:
        store = store_in(root / "not" / "yet" / "xla")
        assert store.put("a", b"code", label="", seconds=1)
        with store.claim("a", patience=0):
            modes = {path.name: mode(path) for path in store.folder.iterdir()}
    finally:
        os.umask(old)
    assert len(modes) == 3, "an entry, the manifest and a claim"
    assert set(modes.values()) == {0o600}
    assert {mode(path) for path in [root, *root.rglob("*")] if path.is_dir()} == {0o700}


@pytest.mark.parametrize("part", ["", "jaxlib-1", "jaxlib-1/cpu"])
@pytest.mark.parametrize("bits", [0o755, 0o750, 0o711])
def test_a_folder_that_others_may_look_into_is_used_and_left_as_it_was_found(cache, said, part, bits):
    (cache / part).chmod(bits)
    for _ in range(2):
        store = store_in(cache)
        assert store.get("bait") is not None
        assert store.put("more", b"code", label="", seconds=1)
    assert mode(cache / part) == bits
    message = said.pop()
    assert str(cache / part) in message
    assert "Others may look into" in message
    assert "chmod go-rwx" in message


def test_a_folder_of_somebody_elses_that_is_named_by_mistake_keeps_its_mode_and_its_files(tmp_path, said):
    """As ``GEMMA_JAX_COMPILE_CACHE=/opt`` for root."""
    opt = tmp_path / "opt"
    (opt / "program" / "bin").mkdir(parents=True)
    (opt / "program" / "bin" / "run").write_text("theirs")
    (opt / "jaxlib-0.9.2-source" / "cpu").mkdir(parents=True)
    (opt / "jaxlib-0.9.2-source" / "cpu" / "code.c").write_text("theirs")
    opt.chmod(0o755)
    before = {path: path.lstat().st_mode for path in [opt, *opt.rglob("*")]}
    store = Store(opt / platform_folder() / "cpu", root=opt)
    assert store.put("a", b"code", label="", seconds=1)
    assert [len(each.entries()) for each in stores(opt)] == [1]
    assert sum(each.clear() for each in stores(opt)) == 1
    assert [each.verify() for each in stores(opt)] == [[]]
    assert {path: path.lstat().st_mode for path in before} == before
    assert {mode(path) for path in [store.folder, store.folder.parent]} == {0o700}
    assert "Others may look into" in said.pop()


def test_no_folder_that_was_there_has_its_mode_changed(cache, monkeypatch, said):
    changed = []
    real = os.chmod
    monkeypatch.setattr(os, "chmod", lambda path, *args, **named: (changed.append(path), real(path, *args, **named)))
    for bits in range(0o700, 0o1000):
        for part in ["", "jaxlib-1", "jaxlib-1/cpu", ".."]:
            before = mode(cache / part)
            (cache / part).chmod(bits)
            changed.clear()
            store_in(cache).get("bait")
            assert (mode(cache / part), changed) == (bits, [])
            (cache / part).chmod(before)
    assert len(said) == 2, "one for those that others may look into, one for those that they may write to"
    said.clear()


def test_a_file_system_that_cannot_be_written_is_read(cache, faults, said):
    with faults.failing(READ_ONLY):
        assert store_in(cache).get("bait") is not None
    assert "Read-only" in said.pop()


def test_a_folder_above_that_others_may_read_is_left_alone(cache):
    cache.parent.chmod(0o755)
    assert store_in(cache).get("bait") is not None
    assert mode(cache.parent) == 0o755


def test_a_sticky_folder_further_above_is_safe(cache):
    # As /tmp: others cannot take away what lies in it. pytest's own folders are in one.
    cache.parent.parent.chmod(0o1777)
    assert store_in(cache).get("bait") is not None


def test_a_read_only_folder_stays_so(cache, said):
    below(cache).chmod(0o500)
    assert store_in(cache).get("bait") is not None
    assert mode(below(cache)) == 0o500
    said.clear()  # root writes there all the same; others are told that nothing is kept


def test_what_was_checked_is_what_is_used(cache):
    store = store_in(cache)
    assert store.get("bait") is not None
    moved = aside(below(cache))
    trap = cache.parent / "trap"
    trap.mkdir()
    below(cache).symlink_to(trap)
    assert store.put("new", b"code", label="", seconds=1)
    assert store.get("new") is not None
    assert list(trap.iterdir()) == []
    assert len(list(moved.glob("*.entry"))) == 2


def test_a_folder_that_is_swapped_for_a_link_after_the_checks_is_not_opened(cache, monkeypatch):
    real = folder_module._check_own

    def swapped(path, facts):
        real(path, facts)
        if path == below(cache):
            path.symlink_to(aside(path))

    monkeypatch.setattr(folder_module, "_check_own", swapped)
    with pytest.raises(NotADirectoryError):
        open_folder(below(cache), cache)


def test_a_daemon_that_closed_all_files_hears_no_complaint(root):
    folder = open_folder(root, root)
    os.close(folder.fd)
    del folder  # what is raised here is a warning, and so an error


def test_a_folder_is_made_once_by_whoever_is_first(root, monkeypatch):
    real = Path.mkdir

    def late(path, *args):
        real(path, *args)  # another process is faster
        return real(path, *args)

    monkeypatch.setattr(Path, "mkdir", late)
    assert open_folder(below(root), root).names() == []
    assert mode(below(root)) == 0o700


def test_a_folder_that_another_made_is_checked_too(root, monkeypatch, said):
    real = Path.mkdir

    def trap(path, *args):
        real(path, *args)
        path.chmod(0o777)
        return real(path, *args)

    monkeypatch.setattr(Path, "mkdir", trap)
    assert store_in(root).get("a") is None
    assert "0777" in said.pop()


@with_link_of_root
def test_links_that_root_keeps_at_the_top_are_followed():
    assert _without_system_link(Path("/bin/a/b")) == Path("/usr/bin/a/b")
    assert _without_system_link(Path("/usr/bin")) == Path("/usr/bin")
    assert _without_system_link(Path("/nothing/here")) == Path("/nothing/here")


@as_root
@with_link_of_root
def test_links_of_others_at_the_top_are_not(monkeypatch):
    real = Path.lstat

    def foreign(path):
        facts = list(real(path))
        facts[4] = STRANGER
        return os.stat_result(facts)

    monkeypatch.setattr(Path, "lstat", foreign)
    assert _without_system_link(Path("/bin/a/b")) == Path("/bin/a/b")


@pytest.mark.parametrize(
    ("folder", "root"), [("xla/cpu", "xla"), ("/a/xla/../b", "/a/xla"), ("/a/b", "/a/xla"), ("/a", "/a/xla")]
)
def test_a_folder_is_absolute_and_in_its_root(folder, root):
    with pytest.raises(InputError, match="absolute folder"):
        Store(Path(folder), root=Path(root))


# Files in the folder


@pytest.mark.parametrize(
    ("bits", "expected"),
    [(0o600, None), (0o644, None), (0o400, None), (0o660, "others may write"), (0o602, "others may write")],
)
def test_files_that_others_may_write_to_are_not_ours(tmp_path, bits, expected):
    path = tmp_path / "file"
    path.write_bytes(b"")
    path.chmod(bits)
    assert (blemish(path.stat()) or "").startswith(expected or "")
    assert (blemish(path.stat()) is None) == (expected is None)


@pytest.mark.parametrize("trap", ["link", "pipe", "foreign", "folder"])
def test_what_is_swapped_after_the_first_look_is_neither_followed_nor_waited_for(root, monkeypatch, trap):
    folder = open_folder(root, root)
    for name in ["good", "file"]:
        (root / name).write_bytes(b"code")
    good = folder.stat("good")
    if trap == "foreign":
        (root / "file").chmod(0o666)
    else:
        (root / "file").unlink()
        traps = {"link": lambda path: path.symlink_to("good"), "pipe": os.mkfifo, "folder": Path.mkdir}
        traps[trap](root / "file")
    monkeypatch.setattr(folder, "stat", lambda _: good)  # it was good when it was looked at
    with pytest.raises(OSError if trap == "link" else DamagedError):
        folder.read("file", 100)


def test_links_pipes_folders_and_the_files_of_others_are_not_ours(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"")
    linked(tmp_path / "link", path)
    os.mkfifo(tmp_path / "pipe")
    assert blemish(path.lstat()) is None
    for name in ["link", "pipe", "."]:
        assert blemish((tmp_path / name).lstat()) == "it is no regular file"
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    assert "belongs to user" in blemish(path.lstat())
