"""Measure the same model by transformers' code, traced through torchax and served by our engine."""

from __future__ import annotations

from functools import partial

from benchmarks.families.ours_family import start
from benchmarks.running.serve import serve

if __name__ == "__main__":
    serve(partial(start, "torchax:"))
