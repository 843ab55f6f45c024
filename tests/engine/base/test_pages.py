"""Which pages a window needs, against a count of the tokens that are looked at."""

from __future__ import annotations

import doctest

from langchain_gemma_jax.engine.base import pages
from langchain_gemma_jax.engine.base.pages import PageSizes, PageTotals, Paging
from langchain_gemma_jax.models.seams import kv_cache


def looked_at(length, window):
    """The positions that the token behind the first ``length`` ones attends to, but for its own."""
    return range(max(0, length - window + 1), length)


def test_the_pages_of_a_window_are_those_that_its_tokens_are_in():
    for slots in (1, 3, 8):
        for window in (1, 2, 7, 8, 9, 20):
            paging = Paging(slots, window)
            for length in range(50):
                found = {position // slots for position in looked_at(length, window)}
                kept = paging.local(length)
                # A page more, at most: that of the next token, before anything else is in the window.
                assert found <= set(kept)
                assert not found or (kept.start, kept.stop) == (min(found), max(found) + 1)
                assert len(kept) <= len(found) + 1


def test_a_beginning_can_be_continued_if_all_pages_of_its_window_are_there():
    for slots, window in ((1, 3), (4, 4), (4, 9), (8, 3)):
        paging = Paging(slots, window)
        for bits in range(64):
            held = {page for page in range(6) if bits >> page & 1}
            for length in range(6 * slots):
                longest = max(each for each in range(length + 1) if set(paging.local(each)) <= held)
                assert paging.reach(held, length) == longest


def test_without_local_layers_every_beginning_can_be_continued():
    paging = Paging(8, None)
    assert [paging.reach((), length) for length in (0, 1, 8, 100)] == [0, 1, 8, 100]
    assert len(paging.local(1000)) == 0


def test_a_table_has_a_place_for_every_page_of_a_window_and_a_chunk_behind_it():
    for slots, window, chunk in ((8, 8, 32), (8, 20, 5), (64, 512, 512), (4, 1, 1)):
        paging = Paging(slots, window)
        entries = paging.entries(chunk, 10**6)
        for length in range(200):
            needed = {*paging.local(length), *range(length // slots, paging.count(length + chunk))}
            assert len({page % entries for page in needed}) == len(needed)
    assert (Paging(8, 20).entries(32, 24), Paging(8, None).entries(32, 24)) == (3, 1)


def test_bytes_are_those_of_both_kinds():
    assert PageSizes(100, 7).of(PageTotals(3, 2)) == 314


def test_a_page_is_as_large_as_that_of_the_cache():
    assert pages.PAGE == kv_cache.PAGE


def test_the_examples_are_true():
    found = doctest.testmod(pages)
    assert (found.failed, found.attempted > 1) == (0, True)
