"""The content of an engine's memory, told to other processes."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.residency import status_file
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.engine.residency.status_file import ShownModel, StatusFile, shown_models

STATUS = ModelStatus(
    name="./a",
    state=State.RESIDENT,
    weights=100,
    kv=20,
    workspace=3,
    host_kv=7,
    leases=0,
    idle_s=1000.0,
    pinned=True,
    keep_alive=None,
    load_s=0.0,
    read_s=0.0,
)

NOTICE = ShownModel(1, "./secret", "resident", 1, 0, 0.0, in_use=False, pinned=False)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    return tmp_path / "running"


def test_what_is_shown_is_read(monkeypatch):
    monkeypatch.setattr(status_file.time, "time", lambda: 10_000.0)
    board = StatusFile()
    board.show([STATUS])
    (notice,) = shown_models()
    assert (notice.process, notice.name, notice.state) == (os.getpid(), "./a", "resident")
    assert (notice.nbytes, notice.host_kv, notice.in_use, notice.pinned) == (123, 7, False, True)
    assert notice.used_at == 9000.0
    board.take_down()
    assert shown_models() == []


def test_it_is_written_when_something_changes_and_now_and_then(folder, monkeypatch):
    board = StatusFile()

    def written(status: ModelStatus) -> bool:
        for file in folder.glob("*.json"):
            file.unlink()
        board.show([status])
        return bool(list(folder.glob("*.json")))

    assert written(STATUS)
    assert not written(STATUS)
    assert written(replace(STATUS, leases=1))
    assert not written(replace(STATUS, leases=2))
    assert written(replace(STATUS, state=State.ABSENT))
    monkeypatch.setattr(board, "_next", time.monotonic())
    assert written(replace(STATUS, state=State.ABSENT))
    assert not list(folder.glob("*.new"))


def test_engines_do_not_write_over_each_other():
    boards = [StatusFile(), StatusFile()]
    for number, board in enumerate(boards):
        board.show([replace(STATUS, name=f"./{number}")])
    assert [notice.name for notice in shown_models()] == ["./0", "./1"]


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_its_user_can_read_it_whatever_the_umask(folder):
    old = os.umask(0)
    try:
        StatusFile().show([STATUS])
    finally:
        os.umask(old)
    assert (mode(folder), [mode(file) for file in folder.iterdir()]) == (0o700, [0o600])


ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from langchain_gemma_jax.engine.residency.status_file import StatusFile
from tests.engine.residency.test_status_file import STATUS
board = StatusFile()
board.show([STATUS])
if sys.argv[1] == "fork":
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, b".")
        sys.stdin.read()  # a child that lives on holds nothing of its parent's
        os._exit(0)
    os.read(read, 1)
print("shown", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("way", ["alone", "fork"])
def test_files_of_killed_processes_go_when_an_engine_starts_or_somebody_looks(folder, way):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, way], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout.readline() == b"shown\n"
        (notice,) = shown_models()
        assert notice.process == process.pid
        process.kill()
        process.wait()
        # Another process has the number now: this one, as far as the name tells.
        (file,) = folder.iterdir()
        reused = folder / f"{os.getpid()}-{file.name.partition('-')[2]}"
        file.rename(reused)
        (folder / ".0123456789abcdef.tmp").write_text("[{")
        board = StatusFile()
        board.show([replace(STATUS, name="./b")])
        assert not reused.exists()
        assert [notice.name for notice in shown_models()] == ["./b"]
        assert len(list(folder.iterdir())) == 1
        board.take_down()
        assert list(folder.iterdir()) == []
    finally:
        process.kill()
        process.communicate()  # which ends the child's reading too


def test_what_is_there_and_not_ours_is_neither_followed_nor_read_nor_touched(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(json.dumps([dataclasses.asdict(NOTICE)]))
    secret.chmod(0o644)
    folder.mkdir(0o700)
    (folder / "1-0.json").symlink_to(secret)
    os.mkfifo(folder / "2-0.json")
    (folder / "3-0.json").write_text(secret.read_text())
    (folder / "3-0.json").chmod(0o666)
    (folder / "notes.json").write_text("mine")
    before = {path: path.lstat() for path in [secret, *folder.iterdir()]}
    board = StatusFile()
    board.show([STATUS])
    assert [notice.name for notice in shown_models()] == ["./a"]
    board.take_down()
    after = {path: path.lstat() for path in [secret, *folder.iterdir()]}
    assert [(path, facts.st_mode, facts.st_mtime_ns) for path, facts in after.items()] == [
        (path, facts.st_mode, facts.st_mtime_ns) for path, facts in before.items()
    ]


@pytest.mark.parametrize("trap", ["link", "writable", "file", "parent writable"])
def test_a_folder_that_others_could_write_to_is_not_used(folder, tmp_path, trap):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    match trap:
        case "link":
            folder.symlink_to(elsewhere)
        case "writable":
            folder.mkdir()
            folder.chmod(0o777)
        case "file":
            folder.write_text("theirs")
        case "parent writable":
            folder.mkdir(0o700)
            tmp_path.chmod(0o777)
    before = mode(folder)
    StatusFile().show([STATUS])
    assert (shown_models(), list(elsewhere.iterdir())) == ([], [])
    assert mode(folder) == before
    assert not folder.is_dir() or list(folder.iterdir()) == []
    tmp_path.chmod(0o700)


def test_a_folder_that_others_may_look_into_is_used_said_and_left(folder, caplog):
    folder.mkdir()
    folder.chmod(0o755)
    StatusFile().show([STATUS])
    assert len(shown_models()) == 1
    assert mode(folder) == 0o755
    assert "others may look into" in caplog.text


def test_a_name_that_somebody_planted_is_replaced_and_never_written_through(folder, tmp_path):
    board = StatusFile()
    board.show([STATUS])
    (file,) = folder.iterdir()
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    file.unlink()
    file.symlink_to(victim)
    board.show([replace(STATUS, leases=1)])
    assert victim.read_text() == "theirs"
    assert not file.is_symlink()
    assert [notice.in_use for notice in shown_models()] == [True]


def test_a_folder_that_is_moved_away_is_made_anew(folder):
    board = StatusFile()
    board.show([STATUS])
    folder.rename(folder.with_name("aside"))
    for leases in (1, 0):
        board.show([replace(STATUS, leases=leases)])
    shutil.rmtree(folder.with_name("aside"))
    for leases in (1, 0):
        board.show([replace(STATUS, leases=leases)])
    assert len(shown_models()) == 1


def test_damaged_files_are_passed_over(folder):
    boards = [StatusFile() for _ in range(3)]
    for board in boards:
        board.show([STATUS])
    for file, text in zip(folder.iterdir(), ('[{"name": "./a"}]', "[3"), strict=False):
        with file.open("r+") as opened:  # the same file, which its engine holds
            opened.truncate(0)
            opened.write(text)
    assert len(shown_models()) == 1


def test_nothing_depends_on_it(folder, monkeypatch):
    folder.write_text("no folder")
    StatusFile().show([STATUS])
    assert shown_models() == []
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", "relative")
    StatusFile().show([STATUS])
    assert shown_models() == []
    assert status_file.SECONDS > 0
