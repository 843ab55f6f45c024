"""Faults of a cache and whole processes that serve from it: right tokens, no signal, and healed afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from langchain_gemma_jax.compile_cache.store import Store
from tests.engine.faulty_process import SEED, copied, damaged, files, flip, folder_of, start
from tests.engine.fresh_process import answer

pytestmark = pytest.mark.timeout(900)
slow = pytest.mark.slow
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can do that")

TURNS = "turns=2"
STRANGER = 12345


@dataclass(frozen=True)
class Home:
    """A model, a cache that a process has filled, and what that process said."""

    model: Path
    measured: Path
    good: Path
    said: dict[str, object]

    def start(self, root: Path | str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return start(self.model, root, self.measured, *arguments, **environment)

    def serve(self, root: Path | str, *arguments: str) -> dict[str, object]:
        """A process that has to say what the first one said, and nothing on standard error."""
        return self.right(answer(self.start(root, *(arguments or (TURNS, "user")))))

    def serve_warm(self, root: Path) -> None:
        """The same of one that has nothing to compile."""
        found = self.serve(root)
        assert found["hits"] == found["programs"]
        assert [found[name] for name in ("misses", "compiled", "lowered", "user_compiled")] == [0] * 4
        assert damaged(root) == []
        assert {path.name for path in folder_of(root).iterdir() if path.suffix != ".entry"} == {"manifest"}

    def serve_warned(self, root: Path, *arguments: str) -> dict[str, object]:
        """The same of one that warns, once."""
        process = self.start(root, *(arguments or (TURNS,)), warnings="default")
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert err.count("CompileCacheWarning: ") == 1, err
        assert len(err.splitlines()) == 2, f"more than the warning, and the line that it comes from: {err}"
        return self.right(json.loads(out)) | {"warning": err}

    def right(self, found: dict[str, object]) -> dict[str, object]:
        pairs = list(zip(found["answers"], self.said["answers"], strict=False))  # as many turns as both have
        assert pairs
        assert all(one == other for one, other in pairs)
        assert found.get("user", self.said["user"]) == self.said["user"]
        return found


@pytest.fixture(scope="module")
def home(tiny_folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("home")
    root, measured = place / "good", place / "measured"
    said = answer(start(tiny_folder, root, measured, TURNS, "user"))
    assert said["misses"] == said["programs"] == 4
    assert said["user_compiled"] == 3
    return Home(tiny_folder, measured, root, said)


@pytest.fixture
def cache(home, tmp_path):
    """A good one, of its own."""
    return copied(home.good, tmp_path / "home" / "xla")


@pytest.fixture
def chance(request):
    print(f"ENGINE_TEST_SEED={SEED}")  # noqa: T201
    return random.Random(f"{SEED} {request.node.name}")


def two_at_once(work: Callable[..., object], *lists: object) -> list[object]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(work, *lists))


def kept(name: str) -> bool:
    """Return True if a process that finds everything reads it: JAX's entries are the user's functions' too."""
    return not name.startswith("jax/") or name.startswith("jax/jit_users_")


@pytest.mark.long
def test_what_the_user_compiles_is_found_next_to_the_engine(home):
    second = home.serve(home.good, TURNS, "user", f"watch={home.good}")
    assert any(event.startswith(f"open {folder_of(home.good)}") for event in second["seen"]), "so the watch sees it"
    assert (second["user_hits"], second["user_compiled"]) == (3, 0)
    assert (second["hits"], second["compiled"], second["lowered"]) == (4, 0, 0)


# Bits.


def flips(home: Home, root: Path, turns: list[tuple[str, bool]], chance: random.Random) -> None:
    """One bit, one process. It compiles what was hit, and nothing else: so what was hit before was healed."""
    before = files(root).keys()
    for name, unseen in turns:
        flip(files(root)[name], chance, unseen=unseen)
        found = home.serve(root)
        made = [found[what] for what in ("misses", "compiled", "user_compiled")]
        assert made == [*[int(name.startswith("program/"))] * 2, int(name.startswith("jax/"))], name
        assert damaged(root) == [], name
        assert files(root).keys() == before, name
    home.serve_warm(root)


@slow
def test_fifty_flipped_bits_are_found_and_healed(home, tmp_path, chance):
    names = [name for name in files(home.good) if kept(name)]
    assert len(names) == 4 + 1 + 1 + 3, "programs, the opening, the manifest, the user's functions"

    def chain(number: int) -> None:
        mine, turns = random.Random(chance.random()), []
        while len(turns) < 25:
            turns += [(name, mine.random() < 0.7) for name in mine.sample(names, len(names))]
        flips(home, copied(home.good, tmp_path / str(number)), turns[:25], mine)

    two_at_once(chain, [0, 1])


# Cuts.

CUTS: list[Callable[[int], int]] = [
    lambda size: size - 1,
    lambda size: size // 2,
    lambda size: size // 4,
    lambda _: 0,
    lambda _: 1,
]


def all_cut(home: Home, root: Path) -> None:
    """Each program in another way, and one process."""
    names = sorted(name for name in files(root) if name.startswith(("program/", "opening/")))
    for name, cut in zip(names, CUTS, strict=True):
        path = files(home.good)[name].relative_to(home.good)
        os.truncate(root / path, cut((root / path).stat().st_size))
    found = home.serve(root)
    assert (found["misses"], found["compiled"], found["user_compiled"]) == (4, 4, 0)
    home.serve_warm(root)


@pytest.mark.long
def test_what_was_altered_or_cut_off_is_compiled_anew(home, cache, chance):
    found = files(cache)
    program, cut, _, _ = sorted(name for name in found if name.startswith("program/"))
    mine = next(name for name in found if name.startswith("jax/jit_users_"))
    for name in (program, mine, next(name for name in found if name.startswith("opening/"))):
        flip(found[name], chance, unseen=True)
    os.truncate(found[cut], found[cut].stat().st_size // 2)
    served = home.serve(cache)
    assert [served[what] for what in ("misses", "compiled", "user_compiled")] == [2, 2, 1]
    assert files(cache).keys() == found.keys()
    home.serve_warm(cache)


@slow
def test_each_kind_of_file_may_be_altered_or_all_be_cut_off(home, cache, tmp_path, chance):
    program, opening, mine = (
        next(name for name in files(cache) if kept(name) and name.startswith(kind))
        for kind in ("program/", "opening/", "jax/")
    )
    both = [
        lambda: flips(home, cache, [(mine, True), (program, True), (opening, False)], chance),
        lambda: all_cut(home, copied(home.good, tmp_path / "cut")),
    ]
    two_at_once(lambda work: work(), both)


@slow
@pytest.mark.parametrize("kind", ["read", "step"])
def test_a_program_that_was_cut_off_in_any_way_is_compiled_anew(home, cache, kind):
    for cut in CUTS:
        path = next(path for name, path in files(cache).items() if f"/{kind}/" in name)
        os.truncate(path, cut(path.stat().st_size))
        found = home.serve(cache)
        assert (found["misses"], found["compiled"]) == (1, 1)
    home.serve_warm(cache)


@slow
def test_programs_that_are_whole_but_cannot_be_loaded_are_compiled_anew(home, cache):
    store = Store(folder_of(cache), root=cache)
    for name in files(cache):
        if name.startswith("program/"):
            assert store.put(name, b"what another release of JAX would write", label=name, seconds=1.0)
    out, err = home.start(cache, TURNS, "user").communicate()
    found = home.right(json.loads(out))
    assert found["misses"] == 4
    assert err.count("could not be loaded and is made again") == len(err.splitlines()) == 4
    home.serve_warm(cache)


# Kills.


def killed(home: Home, root: Path, chance: random.Random, together: int, longest: float) -> tuple[int, int]:
    """Have processes killed that start together: at a moment, or at a call that changes a file. How many of each."""
    at_calls = [chance.random() < 1 / 3 for _ in range(together)]
    processes = [
        home.start(root, TURNS, "user", *([f"dies={chance.randrange(1, 150)}"] if at_call else []))
        for at_call in at_calls
    ]
    moments = [float("inf") if at_call else chance.uniform(0.3, longest) for at_call in at_calls]
    found = [0, 0]
    gone = 0.0
    for moment, process, at_call in sorted(zip(moments, processes, at_calls, strict=True), key=lambda one: one[0]):
        if not at_call:
            time.sleep(moment - gone)
            gone = moment
            process.kill()
        out, err = process.communicate()
        assert err == ""
        assert process.returncode in {0, -signal.SIGKILL}
        if process.returncode == 0:
            home.right(json.loads(out))
        else:
            found[at_call] += 1
    assert [name for name in damaged_entries(root) if name.endswith(".entry")] == [], "it is there whole, or not at all"
    return found[0], found[1]


def damaged_entries(root: Path) -> list[str]:
    return damaged(root) if any(root.glob("*/*/manifest")) else []


def healed(home: Home, root: Path) -> None:
    home.serve(root)
    home.serve_warm(root)


@slow  # who is killed while it holds, or writes, what others wait for: tests/compile_cache, in each run
def test_processes_that_are_killed_leave_nothing_that_counts(home, tmp_path, chance):
    root = tmp_path / "xla"
    assert sum(killed(home, root, chance, together=3, longest=3)) >= 1
    healed(home, root)


@slow
def test_a_hundred_killed_processes_leave_nothing_that_counts(home, tmp_path, chance):
    root, moments, calls = tmp_path / "xla", 0, 0
    for turn in count():
        more = killed(home, root, chance, together=1 + turn % 6, longest=3 + turn % 6)
        moments, calls = moments + more[0], calls + more[1]
        healed(home, root)
        if moments + calls >= 100:
            break
        for path in list(folder_of(root).glob("*.entry")):
            if chance.random() < 2 / 3:  # so that there is something to compile
                path.unlink()
    print(f"{moments} killed at a moment, {calls} at a call that changes a file, in {turn + 1} turns")  # noqa: T201
    assert moments >= 50
    assert calls >= 20


# Disks.


@contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """A file system of its own."""
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@as_root
@slow
def test_a_full_file_system_costs_a_warning(home, tmp_path):
    with mounted(tmp_path / "full", "size=1m,mode=0700") as place:
        root = place / "xla"
        first = home.serve_warned(root)
        assert "No space left" in str(first["warning"])
        assert first["misses"] == 4
        assert [path.name for path in root.glob("*/*/.*")] == []
        assert damaged_entries(root) == []
        second = home.serve_warned(root)
        assert second["hits"] > 0
        assert second["hits"] + second["misses"] == 4  # type: ignore[operator]
        subprocess.run(["mount", "-o", "remount,size=16m", place], check=True)
        healed(home, root)


@as_root
@slow
def test_a_file_system_that_cannot_be_written_to_is_read_without_a_word(home, tmp_path):
    with mounted(tmp_path / "fixed", "size=16m,mode=0700") as place:
        root = copied(home.good, place / "xla")
        next(path for name, path in files(root).items() if "/read/" in name).unlink()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        found = home.serve(root, TURNS)
        assert (found["hits"], found["misses"]) == (3, 1)


def read_only(home: Home, cache: Path) -> None:
    """A folder in which nothing can be made, and a program is missing."""
    missing = next(path for name, path in files(cache).items() if "/read/" in name)
    missing.unlink()
    before = sorted(path.name for path in missing.parent.iterdir())
    missing.parent.chmod(0o500)
    found = home.serve(cache, TURNS, "powerless")
    assert (found["hits"], found["misses"]) == (3, 1)
    assert sorted(path.name for path in missing.parent.iterdir()) == before
    missing.parent.chmod(0o700)


@slow
def test_a_folder_that_vanishes_between_two_turns_is_not_missed(home, cache):
    """All programs are there after the first answer, so nothing has to be kept."""
    plain = home.serve("off", "turns=8")
    found = home.serve(cache, "turns=8", f"vanish={cache}")
    assert found["answers"] == plain["answers"]
    assert found["hits"] >= 4
    assert not cache.exists()
    home.serve(cache)
    home.serve_warm(cache)


# Traps.


def aside(path: Path) -> Path:
    return path.rename(path.with_name(f"{path.name}-aside"))


def linked(part: str) -> Callable[[Path], Path]:
    def link(root: Path) -> Path:
        path = folder_of(root) if part == "folder" else folder_of(root).parent if part == "platform" else root
        path.symlink_to(aside(path))
        return root

    return link


def parent_linked(root: Path) -> Path:
    link = root.parent.with_name("link")
    link.symlink_to(root.parent)
    return link / root.name


def bits(mode: int, place: Callable[[Path], Path]) -> Callable[[Path], Path]:
    def change(root: Path) -> Path:
        place(root).chmod(mode)
        return root

    return change


def given_away(root: Path) -> Path:
    os.chown(folder_of(root), STRANGER, -1)
    return root


HOSTILE = {
    "folder 0770": bits(0o770, folder_of),
    "platform linked": linked("platform"),
    "root 0777": bits(0o777, lambda root: root),
    "root linked": linked("root"),
    "parent linked": parent_linked,
    "parent 0777": bits(0o777, lambda root: root.parent),
    "a name that others can guess": bits(0o1777, lambda root: root.parent),
    "given away": given_away,
}


def refused(home: Home, shape: str, place: Path) -> None:
    """A process warns of it, and neither reads nor writes there: not even what is as good as ever."""
    place.mkdir()
    root = HOSTILE[shape](copied(home.good, place / "home" / "xla"))
    before = tree(place)
    found = home.serve_warned(root, TURNS, f"watch={place}", f"watch={root}")
    assert "are not kept" in str(found["warning"]), shape
    assert (found["seen"], found["hits"], found["misses"]) == ([], 0, 4), shape
    assert tree(place) == before, shape


def tree(place: Path) -> dict[str, tuple[int, bytes]]:
    """Everything below, by its path: when it was changed, and what is in it."""
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in place.rglob("*")
    }


@pytest.mark.long
def test_a_folder_in_which_nothing_can_be_made_is_read_without_a_word(home, cache):
    read_only(home, cache)


@slow
@as_root
def test_no_folder_that_others_can_change_is_used(home, tmp_path):
    two_at_once(lambda shape: refused(home, shape, tmp_path / shape.replace(" ", "-")), HOSTILE)


# Crowds.


@slow
def test_eight_processes_five_times(home, tmp_path):
    root, misses = tmp_path / "xla", []
    for _ in range(5):
        processes = [home.start(root, TURNS) for _ in range(8)]
        found = [home.right(answer(process)) for process in processes]
        misses.append(sum(one["misses"] for one in found))  # type: ignore[misc]
        assert {one["programs"] for one in found} == {4}
    assert misses == [4, 0, 0, 0, 0]
    home.serve(root)
    home.serve_warm(root)


@slow
def test_twenty_requests_with_a_process_each(home, tmp_path):
    root, misses = tmp_path / "xla", []
    for _ in range(20):
        found = home.right(answer(home.start(root, "turns=1")))
        misses.append(found["misses"])
    assert misses == [4] + [0] * 19
