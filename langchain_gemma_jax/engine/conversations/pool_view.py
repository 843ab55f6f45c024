"""``PoolView``: a model's pool of pages as a picture, for people who watch the engine. Any thread may make one.

The owner thread takes no notice of it: each book is copied at once, and looked at behind its back. So a picture can be
of a moment at which a page changes hands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.conversations.page_books import PageBook

MOST_CELLS = 400  # of a picture: where more pages are in use, each cell stands for several


@dataclass(frozen=True)
class PoolView:
    """The pages of one kind. Cells stand for the pages that were ever taken, each for several next to each other."""

    kind: str  # "global" or "local": the layers whose keys and values are in them
    pages: int
    used: int
    page_bytes: int
    page_tokens: int
    pages_per_cell: int
    busy: tuple[int, ...]  # in each cell, the pages of requests that run ...
    kept: tuple[int, ...]  # ... those of conversations without a request now ...
    shared: tuple[int, ...]  # ... and, of both, those that several conversations have


def pool_views(held: KvHoldings) -> tuple[PoolView, ...]:
    """Return a picture of each kind of page that a model has."""
    running = [resident for resident in held.index.copied() if resident.leased]
    whole = (page for resident in running for page in list(resident.whole))
    local = (page for resident in running for page in list(resident.local.values()))
    slots, sizes = held.paging.slots, held.sizes
    found = (
        _view("global", held.whole_pages, whole, sizes.whole, slots),
        _view("local", held.local_pages, local, sizes.local, slots),
    )
    return tuple(view for view in found if view.page_bytes and view.pages)


def _view(kind: str, book: PageBook, running: Iterable[int], page_bytes: int, slots: int) -> PoolView:
    reached, holders, busy_pages = book.reached, book.holders(), set(running)
    per_cell = max(1, -(-reached // MOST_CELLS))
    busy, kept, shared = ([0] * -(-reached // per_cell) for _ in range(3))
    for page, count in holders.items():
        cell = (page - 1) // per_cell
        if cell < len(busy):  # else it was taken meanwhile
            (busy if page in busy_pages else kept)[cell] += 1
            shared[cell] += count > 1
    return PoolView(
        kind, book.count, len(holders), page_bytes, slots, per_cell, tuple(busy), tuple(kept), tuple(shared)
    )
