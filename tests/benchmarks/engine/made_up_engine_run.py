"""A run of the engine's benchmark that never took place, in round numbers."""

from __future__ import annotations

from benchmarks.running.figures import LLAMA_CPP, OURS, TRANSFORMERS, Figures
from benchmarks.work.conversation import ANSWER, NEW_TOKENS
from benchmarks.work.workload import DTYPES
from tests.benchmarks.running.made_up_run import made_up_run


def conversation(*, per_new_token, whole=2.0, reused_but=1):
    behind = [sum(NEW_TOKENS[:turn]) + ANSWER * turn for turn in range(len(NEW_TOKENS))]
    return {
        "first": [per_new_token * new for new in NEW_TOKENS],
        "whole": [whole] * len(NEW_TOKENS),
        "tokens": [[turn] * ANSWER for turn in range(len(NEW_TOKENS))],
        "reused": [max(0, length - reused_but) for length in behind],
    }


def replay(*, speed, drafted=0, accepted=0, as_taught=101):
    return {
        "first": 0.5,
        "whole": 0.5 + 100 / speed,
        "tokens": 101,
        "as_taught": as_taught,
        "drafted": drafted,
        "accepted": accepted,
    }


def our_round():
    """A step takes 20 ms, 2 % of it Python; eight conversations at once take twice as long as one."""
    step = {"seconds": 2.0, "steps": 100, "host": 0.04, "dispatch": 0.5, "device": 1.4, "bytes": 102400}
    return {
        "conversation": conversation(per_new_token=0.001),
        "drafted conversation": conversation(per_new_token=0.001, whole=2.5),
        "together": {"alone": [1.0] * 8, "1": 1.0, "2": 1.0, "4": 1.6, "8": 2.0},
        "replay": replay(speed=50),
        "drafted replay": replay(speed=100, drafted=200, accepted=80),
        "steps": {"1": step, "8": step},
        "compiles": 0,
    }


def rival(whole, per_new_token=0.002):
    return Figures({"version": "1.0"}, [{"conversation": conversation(per_new_token=per_new_token, whole=whole)}])


def made_up_engine_run():
    run = made_up_run()
    run.compilations.clear()
    facts = {
        "version": "jax 0",
        "recipe": "dot",
        "programs": 72,
        "program_bound": 288,
        "compile_seconds": 99.0,
        "step_rows": [1, 8],
    }
    for dtype in DTYPES:
        run.engines[dtype] = {
            OURS: Figures(facts, [our_round()]),
            TRANSFORMERS: rival(whole=12.0),
            LLAMA_CPP: rival(whole=1.0),
        }
    return run
