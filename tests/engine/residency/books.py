"""Lines of the books of memory, without models."""

from __future__ import annotations

from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry

BUDGET = 100


def entry(name="m", weights=30, *, home="gpu", floor=4, workspace=6, returns=True, **facts):
    """A line."""
    return LedgerEntry(name, home, weights, floor, workspace, returns, **facts)


class Kv:
    """Conversations of so many bytes."""

    def __init__(self, total, busy):
        self.total, self.taken = total, busy

    def nbytes(self):
        return self.total

    def busy(self):
        return self.taken


def resident(pool, name, used, weights=30, kv=(0, 0), **facts):
    """A model in memory, last used then."""
    one = entry(name, weights, **facts)
    pool.entries.append(one)
    pool.reserve(one)
    pool.settle(one, Kv(*kv), used, 0.0)
    return one
