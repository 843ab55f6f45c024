"""What an engine has in memory, told to other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from langchain_gemma_jax.engine.residency import status_file
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.engine.residency.status_file import Noticeboard, notices

STATUS = ModelStatus(
    name="./a",
    state=State.RESIDENT,
    weights=100,
    kv=20,
    workspace=3,
    host_kv=7,
    leases=0,
    idle_s=10.0,
    pinned=True,
    keep_alive=None,
    load_s=0.0,
    read_s=0.0,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", str(tmp_path))
    return tmp_path / "running"


def test_what_is_shown_is_read():
    board = Noticeboard()
    board.show([STATUS])
    (notice,) = notices()
    assert (notice.process, notice.name, notice.state) == (os.getpid(), "./a", "resident")
    assert (notice.nbytes, notice.host_kv, notice.in_use, notice.pinned) == (123, 7, False, True)
    assert notice.used_at == pytest.approx(time.time() - 10, abs=2)
    board.take_down()
    assert notices() == []


def test_it_is_written_when_something_changes_and_now_and_then(folder, monkeypatch):
    board = Noticeboard()

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
    boards = [Noticeboard(), Noticeboard()]
    for number, board in enumerate(boards):
        board.show([replace(STATUS, name=f"./{number}")])
    assert [notice.name for notice in notices()] == ["./0", "./1"]


def test_files_of_processes_that_are_gone_and_damaged_ones_are_passed_over(folder):
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    folder.mkdir()
    dead = folder / f"{int(gone.stdout)}-0.json"
    for file in (dead, folder / "x-0.json", folder / f"{os.getpid()}-7.json", folder / f"{os.getpid()}-8.json"):
        file.write_text(json.dumps([{"name": "./a"}]))
    (folder / f"{os.getpid()}-8.json").write_text("[3")
    assert notices() == []
    assert not dead.exists()


def test_nothing_depends_on_it(folder, monkeypatch):
    folder.write_text("no folder")
    Noticeboard().show([STATUS])
    assert notices() == []
    monkeypatch.setenv("GEMMA_JAX_CACHE_DIR", "relative")
    Noticeboard().show([STATUS])
    assert notices() == []
    assert status_file.SECONDS > 0
