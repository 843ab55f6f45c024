"""The picture of a pool of pages, beside the books that it is made of."""

from __future__ import annotations

import random
from collections import Counter
from types import SimpleNamespace

from langchain_gemma_jax.engine.base.pages import PageSizes, Paging
from langchain_gemma_jax.engine.conversations import pool_view
from langchain_gemma_jax.engine.conversations.page_books import PageBook
from langchain_gemma_jax.engine.conversations.pool_view import pool_views


def test_each_page_is_in_one_cell_and_counted_once(monkeypatch):
    for seed in range(60):
        draw = random.Random(seed)
        monkeypatch.setattr(pool_view, "MOST_CELLS", draw.choice([4, 7, 400]))
        books = PageBook(draw.randint(40, 200)), PageBook(40)
        residents = []
        for _ in range(draw.randint(0, 6)):
            shared = (
                list(draw.choice(residents).whole)[: draw.randint(0, 4)] if residents and draw.random() < 0.5 else []
            )
            whole = [*map(books[0].share, shared), *(books[0].take() for _ in range(draw.randint(0, 5)))]
            local = {number: books[1].take() for number in range(draw.randint(0, 3))}
            residents.append(SimpleNamespace(whole=whole, local=local, leased=draw.random() < 0.5))
        for gone in residents[:1]:
            [books[0].drop(page) for page in gone.whole]
            [books[1].drop(page) for page in gone.local.values()]
        residents = residents[1:]
        index = SimpleNamespace(copied=lambda residents=residents: residents)
        held = SimpleNamespace(
            index=index, whole_pages=books[0], local_pages=books[1], paging=Paging(8, 16), sizes=PageSizes(100, 10)
        )
        for view, pages in zip(
            pool_views(held),
            ([list(each.whole) for each in residents], [list(each.local.values()) for each in residents]),
            strict=True,
        ):
            held_by = Counter(page for each in pages for page in each)
            running = {page for each, one in zip(pages, residents, strict=True) if one.leased for page in each}
            assert view.used == sum(view.busy) + sum(view.kept) == len(held_by)
            assert sum(view.busy) == len(running)
            assert sum(view.shared) == sum(count > 1 for count in held_by.values())
            assert len(view.busy) == len(view.kept) == len(view.shared) <= pool_view.MOST_CELLS
            for page in running:
                assert view.busy[(page - 1) // view.pages_per_cell]
            assert (view.kind == "global", view.page_bytes) in {(True, 100), (False, 10)}


def test_a_kind_of_page_that_a_model_has_not_is_left_out():
    index = SimpleNamespace(copied=list)
    held = SimpleNamespace(
        index=index, whole_pages=PageBook(5), local_pages=PageBook(1), paging=Paging(8, None), sizes=PageSizes(100, 0)
    )
    assert [view.kind for view in pool_views(held)] == ["global"]
