"""Programs that one process compiles are found by the next one.

    python examples/second_process.py

Starts two processes, one after the other, that ask a tiny random Gemma the same, with a cache of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conversation import tiny_model

from langchain_gemma_jax import Ladders, Sampling, configure, engine

FOLDER = "SECOND_PROCESS_MODEL"  # which the processes are told


def ask(folder: Path) -> None:
    """Ask a question, in each of the processes."""
    configure(ladders=Ladders(chunks=(16,), capacities=(128,), rows=(1,), draft=0), max_context=128)
    served = engine().serve(tiny_model(folder))
    began = time.perf_counter()
    done = engine().submit(served, [2, 10, 11, 12], Sampling(max_tokens=8, ignore_eos=True)).result()
    report = engine().report()
    print(f"  {time.perf_counter() - began:.1f} s for the tokens {done.ids}")
    print(f"  {report.compiles} programs compiled, {report.cache_hits} found: {report.cache_saved_s:.1f} s saved")


def main() -> None:
    """Start them."""
    with tempfile.TemporaryDirectory() as scratch:  # which nobody else can write to
        for which in ("first", "second"):
            print(f"The {which} process:", flush=True)
            environment = {FOLDER: scratch, "GEMMA_JAX_COMPILE_CACHE": f"{scratch}/programs"}
            subprocess.run([sys.executable, __file__], env=os.environ | environment, check=True)


if __name__ == "__main__":
    if FOLDER in os.environ:
        ask(Path(os.environ[FOLDER]))
    else:
        main()
