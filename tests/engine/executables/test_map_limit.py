"""A process that has no pieces of memory left is told so, and not killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from langchain_gemma_jax.engine.executables import map_limit
from langchain_gemma_jax.engine.executables.map_limit import A_PROGRAM, at_most, in_use, room_for_a_program
from langchain_gemma_jax.errors import DeviceMemoryError
from tests.engine.faults_support import SMALL, assert_works, greedy, outcome
from tests.engine.tiny import ONE_SIZE

linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="only Linux says how many there are")


@linux
def test_what_is_in_use_is_less_than_what_there_is():
    most = at_most()
    assert most is not None
    assert 100 < in_use() < most


def test_each_thread_that_makes_a_program_needs_room_for_it(monkeypatch):
    monkeypatch.setattr(map_limit, "in_use", lambda: 1000)
    monkeypatch.setattr(map_limit, "at_most", lambda: 1000 + 2 * A_PROGRAM)
    with room_for_a_program(), room_for_a_program():
        with pytest.raises(DeviceMemoryError, match=r"1,000 of them.*6,000.*max_map_count"), room_for_a_program():
            pass
        monkeypatch.setattr(map_limit, "at_most", lambda: None)
        with room_for_a_program():
            pass
    monkeypatch.setattr(map_limit, "at_most", lambda: 1000 + A_PROGRAM)
    with room_for_a_program():
        pass


def test_where_nobody_counts_nobody_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(map_limit, "_MOST", tmp_path / "none")
    monkeypatch.setattr(map_limit, "_MAPS", tmp_path / "none")
    with room_for_a_program():
        pass


@pytest.mark.long
def test_a_request_that_needs_another_program_is_told_and_those_that_do_not_go_on(engine_of, tiny_model, monkeypatch):
    engine = engine_of(ladders=SMALL)
    served = engine.serve(tiny_model)
    assert_works(engine, served)
    with monkeypatch.context() as patch:
        patch.setattr(map_limit, "in_use", lambda: 10**9)
        assert_works(engine, served)
        other = engine_of(ladders=ONE_SIZE, loop_steps=2)
        error = outcome(other.submit(other.serve(tiny_model), [10, 11], greedy(3)))
        told = [str(each) for each in (error, getattr(error, "__cause__", None))]
        assert any("max_map_count" in each for each in told), told
    assert_works(other, other.serve(tiny_model))


USED_UP = """
import ctypes, mmap, sys
from pathlib import Path
from langchain_gemma_jax import Ladders, Sampling, configure, engine

configure(ladders=Ladders(chunks=(16,), capacities=(128,), rows=(1,), draft=0))
served = engine().load(sys.argv[1])
most = int(Path("/proc/sys/vm/max_map_count").read_text())
libc, pages = ctypes.CDLL(None, use_errno=True), most
region = mmap.mmap(-1, pages * 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(region))
used = Path("/proc/self/maps").read_bytes().count(b"\\n")
for page in range(1, most - used - 100, 2):  # one that cannot be written to beside one that can: two pieces
    assert libc.mprotect(ctypes.c_void_p(start + page * 4096), 4096, 1) == 0
try:
    engine().submit(served, [10, 11], Sampling(max_tokens=2)).result()
except Exception as error:
    print(type(error).__name__, "max_map_count" in f"{error} {error.__cause__}")
"""


@linux
@pytest.mark.slow
def test_a_process_that_has_none_left_is_not_killed(tiny_folder):
    ended = subprocess.run(
        [sys.executable, "-c", USED_UP, str(tiny_folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert (ended.returncode, ended.stdout.split()[-1:]) == (0, ["True"]), ended
