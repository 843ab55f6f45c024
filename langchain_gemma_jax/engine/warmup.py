"""Runs every program once, so that none has to be compiled while somebody waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import jax
import numpy as np

from langchain_gemma_jax.engine.buckets import ProgramKey
from langchain_gemma_jax.engine.kv import SequenceKV, physical
from langchain_gemma_jax.engine.memory import free
from langchain_gemma_jax.engine.runner import Runner


def warm(runner: Runner, max_context: int) -> Iterator[Callable[[], None]]:
    """What the owner thread has to run, one after the other: what a conversation needs first comes first."""
    ladders = runner.ladders
    last = ladders.capacity(max_context)
    known = sorted(key for key in runner.device.bound if all(size <= last for size in _capacities(key)))
    order = {"empty": 0, "read": 1, "pick": 2, "step": 3, "verify": 4, "resize": 5, "snapshot": 6, "restore": 7}
    for key in sorted(known, key=lambda key: (max(_capacities(key), default=0), order[str(key[0])], key[1:])):
        if key[0] != "verify" or runner.drafts:
            yield partial(_run, runner, key)


def _capacities(key: ProgramKey) -> tuple[int, ...]:
    """The capacities in a program's key: the last size; of a resize both; of a pick none."""
    sizes = tuple(int(size) for size in key[1:])
    return () if key[0] == "pick" else sizes if key[0] == "resize" else sizes[-1:]


def _run(runner: Runner, key: ProgramKey) -> None:
    """One program, on a conversation of nobody's."""
    kind, *rest = key
    sizes = tuple(int(size) for size in rest)
    programs, params, run, put = runner.memory.programs, runner.params, runner.run, runner.device.put
    zero, one = (put(np.array([value], np.int32)) for value in (0, 1))

    def empty(capacity: int) -> SequenceKV:
        made: SequenceKV = run(("empty", capacity), programs.empty, capacity)
        return made

    if kind in {"read", "verify"}:
        size = sizes[0] if kind == "read" else runner.ladders.draft + 1
        tokens = put(np.zeros((1, size), np.int32))
        sequence = empty(sizes[-1])
        if kind == "read":
            found = run(key, programs.read, params, tokens, zero, one, sequence)
        else:
            found = run(key, programs.verify, params, tokens, zero, one, sequence)
    elif kind == "pick":
        (rows,) = sizes
        hidden = put(np.zeros((rows, runner.memory.shape.config.width), np.float32))
        ids = put(np.zeros(physical(runner.memory.shape.max_context), np.int32))
        found = run(
            key, programs.pick, params, hidden, put(np.ones(rows, np.int32)), (ids,) * rows, (runner.idle_row,) * rows
        )
    elif kind == "step":
        rows, capacity = sizes
        found = runner.warm_step(tuple(empty(capacity) for _ in range(rows)), capacity)
    elif kind == "empty":
        found = empty(*sizes)
    elif kind == "resize":
        sequence = empty(sizes[0])
        found = (run(key, programs.resize, sequence, sizes[1]), sequence)
    elif kind == "snapshot":
        sequence = empty(*sizes)
        found = (run(key, programs.snapshot, sequence), sequence)
    else:
        ring, capacity = sizes
        small = next(c for c in runner.ladders.capacities if runner.memory.ring_size(c) == ring)
        source = empty(small)
        rings = run(("snapshot", small), programs.snapshot, source)
        found = (run(key, programs.restore, empty(capacity), rings), source, rings)
    jax.block_until_ready(found)
    free(found)
