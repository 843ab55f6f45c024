"""A process is left with its own exit status, before C++ takes itself down, and over a thread that would abort it."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of the dispatch is waited for"),
]

SCRIPT = """
import atexit, ctypes, sys, threading, time
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early

libc = ctypes.CDLL(None)
libc.on_exit(libc.pause, None)  # as something that is destroyed when C++ takes itself down: it never ends

left = threading.Event()
late = {"terminate": ctypes.CDLL("libstdc++.so.6")._ZSt9terminatev, "abort": libc.abort}.get(sys.argv[-1])
if late:  # as a thread that comes back too late. Python 3.12 starts none while it ends, so it waits from before
    threading.Thread(target=lambda: (left.wait(), late()), daemon=True).start()

def leave():
    assert leave_early()
    left.set()
    time.sleep(0.2 if late else 0)

if "late" not in sys.argv:
    atexit.register(leave)
atexit.register(print, "the end", end="")
sys.exit(3)
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False)


def test_it_is_left_with_its_status_and_what_it_printed():
    ended = run()
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "the end", "")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python itself lets the thread sleep")
@pytest.mark.parametrize("how", ["terminate", "abort"])
def test_a_thread_that_comes_back_too_late_sleeps(how):
    ended = run(how)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "the end", "")


@pytest.mark.long
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of a system call is looked for")
def test_without_it_such_a_process_would_not_end():
    with subprocess.Popen([sys.executable, "-c", SCRIPT, "late"], cwd=Path(__file__).parents[3]) as process:
        until(lambda: Path(f"/proc/{process.pid}/syscall").read_text().startswith("34 "))  # pause
        assert process.poll() is None
        process.kill()


IN_PYTHON = """
import atexit, sys, threading, time
import jax
from jax._src import xla_bridge
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early

jax.devices()
steps, begun = {}, threading.Barrier(4)

def spin(name, x=None):
    steps[name] = 0
    begun.wait()
    while True:
        steps[name] += 1

def trace(name):  # below the frames of JAX's caches, which use Python while they are unwound
    jax.jit(lambda x: spin(name, x)).lower(1.0)

def hold(name):  # a lock that JAX takes when it tidies up
    with xla_bridge._backend_lock:
        trace(name)

for target, name in ((hold, "gemma-jax-background"), (trace, "a caller's"), (spin, "a user's")):
    threading.Thread(target=target, args=(name,), name=name, daemon=True).start()
begun.wait()

def leave():
    assert leave_early([thread.ident for thread in threading.enumerate() if thread.name == "a caller's"])
    before = dict(steps)
    while steps["a user's"] == before["a user's"]:
        time.sleep(0.01)
    print(sorted(name for name in steps if steps[name] == before[name]), end="")

atexit.register(leave)
sys.exit(3)
"""


@pytest.mark.long
def test_threads_that_are_in_python_sleep_and_are_not_unwound_through_jax():
    ended = subprocess.run(
        [sys.executable, "-c", IN_PYTHON],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "[\"a caller's\", 'gemma-jax-background']", "")
