"""A process that ends while calls are being begun: they stop, and one that does not is not waited for."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, sys, threading, time
from langchain_gemma_jax.chat.calling.starting import in_thread
from langchain_gemma_jax.stopping import StoppedError, looking

begun = threading.Event()

def looks():
    begun.set()
    try:
        for _ in looking(iter(int, 1)):
            pass
    except StoppedError:
        print("stopped", flush=True)
        raise

def sleeps():
    begun.set()
    while True:
        time.sleep(3600)

def begin(work):
    try:
        asyncio.run(in_thread(work))
    except BaseException:
        pass

threading.Thread(target=begin, args=({work},), daemon=True).start()
begun.wait()
sys.exit(3)
"""


@pytest.mark.long
@pytest.mark.parametrize(("work", "said"), [("looks", "stopped\n"), ("sleeps", "")])
def test_the_process_ends_as_it_was_told_to(work, said):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{work}", work)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, said, "")
