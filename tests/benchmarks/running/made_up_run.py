"""A run of the benchmark that never took place, in round numbers."""

from __future__ import annotations

from benchmarks.running.figures import BANDWIDTH, LLAMA_CPP, OFFICIAL, OURS, TRANSFORMERS, Figures, Run
from benchmarks.work.workload import DTYPES, LONG_PROMPT, PROMPT


def engine(*, decode, prefill=0.25, tokens=(5, 6, 7), lengths=(LONG_PROMPT, PROMPT), **facts) -> Figures:
    """``decode`` is in milliseconds a token, ``prefill`` in seconds."""
    reads = {str(length): [prefill, prefill] for length in lengths}
    return Figures({"version": "1.0", **facts}, [{"prefill": reads, "decode": decode / 1000, "tokens": tokens}])


def made_up_run() -> Run:
    run = Run(
        machine={"processor": "A", "cores": 2, "memory_bytes": 2**34, "system": "Linux", "python": "3.11"},
        settings={"date": "2026-01-31", "rounds": 1, "threads": 2, "rivals": []},
    )
    for dtype in DTYPES:
        run.engines[dtype] = {
            BANDWIDTH: Figures({}, [{"numpy": 50e9, "XLA": 30e9}]),
            OURS: engine(decode=25, weight_bytes=10**9),
            TRANSFORMERS: engine(decode=40),
            LLAMA_CPP: engine(decode=20, prefill=0.1, tokens=(5, 6, 8)),
            OFFICIAL: engine(decode=250, prefill=2, lengths=(PROMPT,), compile=10.0),
        }
    seconds = {("gemma-3-270m", "bfloat16"): 2.5, ("gemma-3-270m", "float32"): 2.5, ("gemma-3-27b", "bfloat16"): 45.0}
    for (model, dtype), each in seconds.items():
        run.compilations.setdefault(model, {})[dtype] = Figures({}, [{"prefill": each, "decode": each}])
    return run
