"""Scripts in processes of their own: what they say, and how they end."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

PRELUDE = """
import contextlib, os, signal, sys, threading, time
from pathlib import Path
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.api.process import configure, engine
from langchain_gemma_jax.errors import BusyError
from langchain_gemma_jax.models.loading.load import load

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has those that it runs in the background ignore it
LONG = Sampling(max_tokens=100, ignore_eos=True)

def slowly(self, *args, run=DeviceAccess.run, **kwargs):
    time.sleep(0.05)
    return run(self, *args, **kwargs)

def started():
    configure(ladders=Ladders(chunks=(16,), capacities=(128,), rows=(1,)), drafts=False)
    return engine().load(os.environ["TINY"])

def say(word):
    print(word, flush=True)
"""


@dataclass
class Ended:
    """How a child ended."""

    code: int
    words: list[str]
    errors: str


def run(script: str, environment: dict[str, str], tmp_path: Path, stop_at: str = "", prelude: str = PRELUDE) -> Ended:
    """Run a script, with SIGINT when it says so."""
    path = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"
    path.write_text(prelude + textwrap.dedent(script))
    errors = path.with_suffix(".err")
    with errors.open("w") as sink:
        child = subprocess.Popen(
            [sys.executable, "-W", "error", str(path)], stdout=subprocess.PIPE, stderr=sink, text=True, env=environment
        )
        words = []
        assert child.stdout is not None
        for line in child.stdout:
            words.append(line.strip())
            if words[-1] == stop_at:
                child.send_signal(signal.SIGINT)
        child.wait()
        child.stdout.close()
    return Ended(child.returncode, words, errors.read_text())
