"""The memory of each size: the page says what the package predicts."""

from __future__ import annotations

from benchmarks.memory.capacity import CAPACITY, CONTEXTS, PAGE, needs, table
from benchmarks.running.page import replace_block


def test_the_page_says_what_the_engine_reserves():
    page = PAGE.read_text()
    assert page == replace_block(page, table(), CAPACITY), "run: python benchmarks/memory/capacity.py"


def test_room_is_what_is_left_beside_the_weights():
    found = needs("gemma-3-1b")
    room = found.room(24e9, CONTEXTS[0])
    taken = found.weights + found.workspace + room * found.conversations[0]
    assert taken <= 0.9 * 24e9 < taken + found.conversations[0]
    assert found.room(1e9, CONTEXTS[0]) == 0
    # A global layer in four of Gemma 3 1B keeps each token: one head of 256, keys and values, two bytes each.
    assert found.token == 4 * 2 * 256 * 2 + 4  # and the token's id
