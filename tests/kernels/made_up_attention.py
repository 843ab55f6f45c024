"""Attention with made-up queries and caches: its definition in float64, and the library's own door without XLA."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import ml_dtypes
import numpy as np

STORED = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}  # in the library's order


@dataclass(frozen=True)
class Case:
    """What attention is asked for: arrays as traced code hands them over, and what is static."""

    queries: np.ndarray  # [row, token, head, dim]
    keys: np.ndarray  # [row, kv_head, slot, dim]
    values: np.ndarray
    first: np.ndarray  # [row] int32: positions of the first queries
    split: np.ndarray  # [row] int32
    behind: int = 0
    window: int = 1 << 30
    cap: float = 0.0

    @property
    def ring(self) -> int:
        return self.keys.shape[2] - self.behind

    def slot(self, row: int, position: int) -> int:
        """Where a position lies."""
        split = int(self.split[row])
        return self.ring + position - split if self.behind and position >= split else position % self.ring


def made_up(random: np.random.Generator, dtype: str, *, tokens: int | None = None) -> Case:
    """Shapes, positions and a window such as the forward pass has, and some that it never has."""
    rows, group, kv_heads = int(random.integers(1, 4)), int(random.integers(1, 7)), int(random.integers(1, 4))
    dim = 16 * int(random.integers(1, 9))
    tokens = int(random.choice([1, 1, 2, 5, 8, 16, 40, 90])) if tokens is None else tokens
    local = random.random() < 0.5
    window = int(random.integers(1, 70)) if local else 1 << 30
    starts = random.integers(0, int(random.choice([3, 300, 900])), rows).astype(np.int32)
    if not local:
        behind, slots = 0, int(starts.max()) + tokens + int(random.integers(0, 20))
    elif tokens <= 16:
        behind, slots = 0, window + 16
    else:
        behind, slots = tokens, window + 16 + tokens
    shape = (rows, kv_heads, slots, dim)
    keys, values = (random.standard_normal(shape).astype(np.float32).astype(STORED[dtype]) for _ in range(2))
    queries = random.standard_normal((rows, tokens, kv_heads * group, dim)).astype(np.float32) * dim**-0.5 * 4
    cap = float(random.choice([0.0, 0.0, 2.5]))
    return Case(queries.astype(np.float32), keys, values, starts, starts, behind, window, cap)


def by_definition(case: Case) -> np.ndarray:
    """``[row, token, head * dim]`` in float64, a query at a time."""
    rows, tokens, heads, dim = case.queries.shape
    group = heads // case.keys.shape[1]
    keys, values = case.keys.astype(np.float64), case.values.astype(np.float64)
    out = np.zeros((rows, tokens, heads, dim))
    for row, token in np.ndindex(rows, tokens):
        position = int(case.first[row]) + token
        seen = [case.slot(row, at) for at in range(max(0, position - case.window + 1), position + 1)]
        for head in range(heads):
            scores = keys[row, head // group, seen] @ case.queries[row, token, head].astype(np.float64)
            if case.cap:
                scores = np.tanh(scores / case.cap) * case.cap
            shares = np.exp(scores - scores.max())
            out[row, token, head] = shares / shares.sum() @ values[row, head // group, seen]
    return out.reshape(rows, tokens, heads * dim)


def attend_by_hand(loaded: ctypes.CDLL, variant: str, case: Case, *, apart: bool) -> np.ndarray:
    """The same by one variant: each piece of work whole, or every span of it apart."""
    rows, tokens, heads, dim = case.queries.shape
    _, kv_heads, slots, _ = case.keys.shape
    sizes = (ctypes.c_int64 * 8)(rows, tokens, heads, kv_heads, dim, slots, case.behind, case.window)
    keep = [np.ascontiguousarray(x) for x in (case.queries, case.first, case.split, case.keys, case.values)]
    out = np.full((rows, tokens, heads * dim), np.nan, np.float32)
    status = loaded.gemma_jax_attend(
        variant.encode(), list(STORED).index(case.keys.dtype.name), int(apart), sizes, ctypes.c_float(case.cap),
        *(ctypes.c_void_p(array.ctypes.data) for array in (*keep, out)),
    )  # fmt: skip
    assert status == 0, variant
    return out
