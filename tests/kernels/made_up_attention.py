"""Attention with made-up queries and caches: its definition in float64, and the library's own door without XLA."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import ml_dtypes
import numpy as np

STORED = {  # in the library's order
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int8": np.int8,  # turned heads, each with its scale behind it
}
SCALE = 4  # bytes


def hadamard(dim: int) -> np.ndarray:
    """The matrix that a head of so many numbers is multiplied by."""
    one = np.ones((1, 1))
    while dim % (2 * len(one)) == 0:
        one = np.block([[one, one], [one, -one]])
    return np.kron(np.eye(dim // len(one)), one / np.sqrt(len(one)))


def as_stored(x: np.ndarray, dtype: str) -> np.ndarray:
    """Heads ``[..., dim]`` as pages have them."""
    if dtype != "int8":
        return x.astype(STORED[dtype])
    turned = x.astype(np.float64) @ hadamard(x.shape[-1])
    scales = (np.abs(turned).max(-1, keepdims=True) / 127).astype(np.float32)
    codes = np.rint(turned / np.where(scales > 0, scales, 1)).astype(np.int8)
    return np.concatenate([codes, np.ascontiguousarray(scales).view(np.int8)], axis=-1)


def as_numbers(stored: np.ndarray) -> np.ndarray:
    """Return the heads ``[..., dim]`` that stored pages stand for."""
    if stored.dtype != np.int8:
        return stored.astype(np.float64)
    scales = np.ascontiguousarray(stored[..., -SCALE:]).view(np.float32)
    return stored[..., :-SCALE] * scales.astype(np.float64) @ hadamard(stored.shape[-1] - SCALE)


@dataclass(frozen=True)
class Case:
    """The input of attention: arrays as traced code hands them over, and what is static."""

    queries: np.ndarray  # [row, token, head, dim]
    keys: np.ndarray  # [page, kv_head, slot, dim]
    values: np.ndarray
    places: np.ndarray  # [row, 3] int32: first, count, until
    table: np.ndarray  # [row, entry] int32
    window: int = 1 << 30
    cap: float = 0.0

    def at(self, row: int, position: int) -> tuple[int, int]:
        """The page and the slot of a position."""
        slots = self.keys.shape[2]
        return int(self.table[row, position // slots % self.table.shape[1]]), position % slots

    def seen(self, row: int, token: int) -> range:
        """The positions that a query sees."""
        position, until = int(self.places[row, 0]) + token, int(self.places[row, 2])
        return range(max(0, position - self.window + 1), max(position + 1, until))


def made_up(random: np.random.Generator, dtype: str, *, tokens: int | None = None) -> Case:
    """Shapes, positions and a window such as the forward pass has, and some that it never has."""
    rows, group, kv_heads = int(random.integers(1, 4)), int(random.integers(1, 7)), int(random.integers(1, 4))
    dim = 16 * int(random.integers(1, 9))
    tokens = int(random.choice([1, 1, 2, 5, 8, 16, 40, 90])) if tokens is None else tokens
    local = random.random() < 0.5
    window = int(random.integers(1, 70)) if local else 1 << 30
    slots = int(random.choice([1, 4, 16, 64]))
    starts = random.integers(0, int(random.choice([3, 300, 900])), rows)
    counts = np.where(random.random(rows) < 0.3, random.integers(0, tokens + 1, rows), tokens)
    until = np.where(random.random(rows) < 0.3, starts + tokens, 0)
    longest = window + tokens if local else int(starts.max()) + tokens
    entries = -(-longest // slots) + 1
    pages = rows * entries + int(random.integers(1, 9))
    table = random.permutation(pages)[: rows * entries].reshape(rows, entries).astype(np.int32)
    shape = (pages, kv_heads, slots, dim)
    keys, values = (as_stored(random.standard_normal(shape).astype(np.float32), dtype) for _ in range(2))
    queries = random.standard_normal((rows, tokens, kv_heads * group, dim)).astype(np.float32) * dim**-0.5 * 4
    cap = float(random.choice([0.0, 0.0, 2.5]))
    places = np.stack([starts, counts, until], axis=1).astype(np.int32)
    return Case(queries.astype(np.float32), keys, values, places, table, window, cap)


def by_definition(case: Case) -> np.ndarray:
    """``[row, token, head * dim]`` in float64, a query at a time."""
    rows, tokens, heads, dim = case.queries.shape
    group = heads // case.keys.shape[1]
    keys, values = as_numbers(case.keys), as_numbers(case.values)
    out = np.zeros((rows, tokens, heads, dim))
    for row, token in np.ndindex(rows, tokens):
        if token >= case.places[row, 1]:
            continue  # padding
        pages, slots = np.array([case.at(row, position) for position in case.seen(row, token)]).T
        for head in range(heads):
            scores = keys[pages, head // group, slots] @ case.queries[row, token, head].astype(np.float64)
            if case.cap:
                scores = np.tanh(scores / case.cap) * case.cap
            shares = np.exp(scores - scores.max())
            out[row, token, head] = shares / shares.sum() @ values[pages, head // group, slots]
    return out.reshape(rows, tokens, heads * dim)


def attend_by_hand(loaded: ctypes.CDLL, variant: str, case: Case, *, apart: bool) -> np.ndarray:
    """The same by one variant: each piece of work whole, or every span of it apart."""
    rows, tokens, heads, dim = case.queries.shape
    pages, kv_heads, slots, _ = case.keys.shape
    sizes = (ctypes.c_int64 * 9)(
        rows, tokens, heads, kv_heads, dim, pages, slots, case.table.shape[1], case.window
    )  # fmt: skip
    keep = [np.ascontiguousarray(x) for x in (case.queries, case.places, case.table, case.keys, case.values)]
    out = np.full((rows, tokens, heads * dim), np.nan, np.float32)
    status = loaded.gemma_jax_attend(
        variant.encode(), list(STORED).index(case.keys.dtype.name), int(apart), sizes, ctypes.c_float(case.cap),
        *(ctypes.c_void_p(array.ctypes.data) for array in (*keep, out)),
    )  # fmt: skip
    assert status == 0, variant
    return out
