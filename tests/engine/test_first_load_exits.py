"""A process that gives up its first load, and ends, ends as asked: the load may be inside XLA, the engine not begun."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engine.faulty_process import SEED

pytestmark = pytest.mark.timeout(3600)

HELD = """
import ctypes, sys, threading
from langchain_gemma_jax import engine
from langchain_gemma_jax.engine.loop import owner
from langchain_gemma_jax.errors import DeadlineError

held, libc = threading.Event(), ctypes.CDLL(None)
libc.on_exit(libc.pause, None)  # as XLA, when C++ takes itself down under it: such a process never ends
owner.EXIT_SECONDS = 0.0

def never(*_, **__):
    held.set()
    libc.pause()  # a call of C, which nothing interrupts and nothing ends

engine()._loader._files.open = never
for _ in range(3):
    try:
        engine().load("sprout-s", timeout=0.01)
    except DeadlineError:
        pass
held.wait()
assert not engine()._owner.thread.begun
assert [each.name for each in threading.enumerate()].count("gemma-jax-load") == 1
print("given up", flush=True)
match sys.argv[1]:
    case "exits":
        sys.exit(7)
    case "raises":
        raise ValueError("by the script")
    case "closes":
        assert not engine().close(0.0)
"""
WAYS = {"returns": 0, "exits": 7, "raises": 1, "closes": 0}
ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the end of the load is waited for")
def test_a_process_is_left_while_its_first_load_is_inside_xla():
    for way, status in WAYS.items():
        done = subprocess.run([sys.executable, "-c", HELD, way], capture_output=True, text=True, cwd=ROOT, check=False)
        assert (done.returncode, done.stdout) == (status, "given up\n"), f"{way}: {done.stderr}"
        assert done.stderr.strip().endswith("ValueError: by the script" if way == "raises" else ""), done.stderr


SCRIPT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it
from langchain_gemma_jax import engine
from langchain_gemma_jax.errors import DeadlineError

engine()  # so that all is imported: whoever interrupts that interrupts other packages' C
print("begins", flush=True)
way, timeout, tries = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
for _ in range(tries):
    try:
        served = engine().load("sprout-s", timeout=timeout)
    except DeadlineError:
        pass
match way:
    case "exits":
        sys.exit(7)
    case "raises":
        raise ValueError("by the script")
    case "interrupted" | "terminated":
        engine().warmup("sprout-s")
        time.sleep(600)
"""
ENDS = {"returns": 0, "exits": 7, "raises": 1, "interrupted": -signal.SIGINT, "terminated": -signal.SIGTERM}


def ended(number: int, place: Path) -> str:
    """Let a process end at some moment of its first load, with nothing on the disk. Gives what is wrong with it."""
    rng = random.Random(f"{SEED} {number}")
    way, pause, tries = rng.choice(list(ENDS)), rng.uniform(0.05, 2.0), rng.choice((1, 1, 1, 3))
    signals = {"interrupted": signal.SIGINT, "terminated": signal.SIGTERM}
    child = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, way, str(pause), str(tries)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "GEMMA_JAX_COMPILE_CACHE": str(place / str(number))},
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        if way in signals:
            time.sleep(rng.uniform(0.0, 4.0))
            child.send_signal(signals[way])
        _, errors = child.communicate()
    wrong = child.returncode != ENDS[way] or "Exception ignored" in errors or "Fatal" in errors
    return f"{number}, {way} after {pause:.2f} s, {tries} tries: {child.returncode}: {errors}" if wrong else ""


@pytest.mark.slow
@pytest.mark.parametrize("dozen", range(17))
def test_a_process_ends_as_asked_at_any_moment_of_a_first_load(tmp_path, dozen):
    """Two hundred of them: dozens, as a busy machine takes minutes for each."""
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda number: ended(number, tmp_path), range(12 * dozen, 12 * dozen + 12))
        assert not [wrong for wrong in found if wrong]
