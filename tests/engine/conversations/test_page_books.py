"""Free pages and the holders of the others, against a plain list of who has what."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from langchain_gemma_jax.engine.conversations.page_books import PageBook


def test_no_page_is_lost_or_given_twice():
    for seed in range(50):
        rng, count = random.Random(seed), random.Random(seed).randint(1, 12)
        book, held, used = PageBook(count), [], set()
        for _ in range(200):
            move = rng.choice(("take", "share", "drop", "drop"))
            if move == "take" and len(set(held)) == count - 1:
                with pytest.raises(ValueError, match="no page is free"):
                    book.take()
            elif move == "take":
                page = book.take()
                assert page not in held
                assert page in used or len(used - set(held)) == 0, "a used page comes first: its memory is there"
                held.append(page)
                used.add(page)
            elif held and move == "share":
                held.append(book.share(page := rng.choice(held)))
                assert held[-1] == page
            elif held:
                held.remove(page := rng.choice(held))
                assert book.drop(page) is (page not in held)
            assert (book.used, book.free) == (len(set(held)), count - 1 - len(set(held)))
            assert book.holders() == Counter(held)
            assert (book.count, book.reached) == (count - 1, max(used, default=0))
            assert all(book.is_shared(page) == (held.count(page) > 1) for page in held)
            assert book.unused() == sorted(used - set(held))
        assert used <= set(range(1, count)), "page 0 is nobody's"


def test_a_page_that_nobody_has_cannot_be_shared_or_dropped():
    book = PageBook(3)
    page = book.take()
    book.drop(page)
    for wrong in (book.share, book.drop):
        with pytest.raises(KeyError):
            wrong(page)
