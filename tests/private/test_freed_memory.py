from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KEEPS = """
import ctypes, threading
from pathlib import Path
from langchain_gemma_jax.private.freed_memory import keep_less

def resident():
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) << 10

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
keep_less()

def work():
    # The first piece is one of its own; that it is freed raises the limits, unless they are set.
    for _ in range(2):
        piece = libc.malloc(ctypes.c_size_t(24 << 20))
        ctypes.memset(piece, 1, 24 << 20)
        libc.free(piece)
    done.set()
    ends.wait()

done, ends = threading.Event(), threading.Event()
before = resident()
thread = threading.Thread(target=work)
thread.start()
done.wait()
print(resident() - before)
ends.set()
"""

STEPS = """
import ctypes, resource, threading
from langchain_gemma_jax.private.freed_memory import keep_less

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
keep_less()
faults = []

def work():
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        piece = libc.malloc(ctypes.c_size_t(12 << 20))
        ctypes.memset(piece, 1, 12 << 20)
        libc.free(piece)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(faults[0], max(faults[1:]))
"""

MEASURE = """
from pathlib import Path
from langchain_gemma_jax.private.freed_memory import give_back

def resident():
    return int(Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) << 10

pieces = [bytearray(5000) for _ in range(20000)]
kept = pieces[::100]
del pieces
before = resident()
give_back()
print(before - resident())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process holds")
def test_a_thread_does_not_keep_what_it_worked_with():
    run = subprocess.run([sys.executable, "-c", KEEPS], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 8e6


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process holds")
def test_the_scores_of_eight_rows_are_kept_from_step_to_step():
    run = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    first, later = map(int, run.stdout.split())
    assert later < first / 4, "memory that went back to the system is given as new pages again"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what a process holds")
def test_what_lies_between_things_that_stay_is_given_back():
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert int(run.stdout) > 60e6
