"""A system prompt that is read once: an engine ends, and the next one takes it from the disk.

python examples/prefix_store.py                          # a tiny random model
python examples/prefix_store.py google/gemma-3-270m-it
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from two_models import tiny

from langchain_gemma_jax import Ladders, Sampling, configure, engine

SYSTEM = [2, *range(10, 109)]  # the tokens of a system prompt and its tools


def main(source: str) -> None:
    """Ask two engines, one after the other, behind the same system prompt."""
    for question in ([110, 111], [112, 113]):
        served = engine().load(source)
        done = engine().submit(served, SYSTEM + question, Sampling(max_tokens=4), system=len(SYSTEM)).result()
        print(f"{done.prompt_tokens} tokens sent, {done.reused_tokens} of them known")
        engine().close()  # which writes what is not on the disk yet


if __name__ == "__main__":
    configure(prefix_store="1GB")
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        configure(ladders=Ladders(chunks=(16, 64), capacities=(128,), rows=(1,), draft=0))
        with tempfile.TemporaryDirectory() as scratch:
            main(tiny(Path(scratch, "light")))
