"""The memory that a device has for the engine, and that a model will take there."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import pytest

from langchain_gemma_jax.engine.api.model_estimate import (
    MOST_PAGES,
    bytes_of_conversation,
    longest_chunk,
    shape_of,
    smallest_conversation,
    weights_bytes,
)
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.page_pool import attends_by_kernel, page_bytes
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.device_memory import HOST_SHARE, SHARE, host_memory, memory_budget
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.tiny import CONFIGS, CONTEXT, LADDERS, RECIPES
from tests.models.int8 import Int8Storage

OURS = {"process_index": 0, "client": SimpleNamespace(process_index=lambda: 0)}  # a device of this process


class Two(SingleDevice):
    """Two devices of one kind."""

    devices = property(lambda self: (self.device, self.device))


def test_the_budget_is_a_share_of_what_there_is():
    card = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 1000}, **OURS)
    host = SimpleNamespace(platform="cpu", memory_stats=lambda: None, **OURS)
    assert memory_budget(Settings(memory_budget="3kB"), SingleDevice(card)) == 3000
    assert memory_budget(Settings(), SingleDevice(card)) == memory_budget(Settings(), Two(card)) == int(SHARE * 1000)
    whole = int(HOST_SHARE * host_memory())
    assert memory_budget(Settings(), SingleDevice(host)) == whole
    assert memory_budget(Settings(), Two(host)) == whole // 2  # they are parts of the same host


def shape_for(name, recipe, budget=1 << 20, **settings):
    """Return the shape of a model, as the engine makes it, with a budget for its conversations."""
    model = SimpleNamespace(
        architecture=Gemma(CONFIGS[name]),
        drafter=None,
        placement=SingleDevice(jax.devices()[0]),
        recipe=recipe,
        tokenizer=SimpleNamespace(vocab_size=300),
    )
    return shape_of(Settings(kv_bytes=budget, **settings), model)


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_and_pages_are_foretold_each_in_its_own_dtype(name):
    here = SingleDevice(SimpleNamespace())
    dense, packed, half = (
        Shape(Gemma(CONFIGS[name]), recipe, 320, CONTEXT, PageCounts(9, 7, 8))
        for recipe in (
            Recipe("float32"),
            Recipe("float32", storage=Int8Storage()),
            Recipe("float32", storage=Int8Storage(), cache_dtype="bfloat16"),
        )
    )
    assert weights_bytes(half, here) == weights_bytes(packed, here) < 0.5 * weights_bytes(dense, here)
    ids = 4 * 9 * 8
    one, other, smaller = (smallest_conversation(shape) - ids for shape in (dense, packed, half))
    assert one == other == 2 * smaller


@pytest.mark.parametrize("name", CONFIGS)
def test_a_pool_has_room_for_the_longest_conversation_and_what_the_budget_allows(name):
    """Powers of two, so that a slightly other budget needs no other programs."""
    recipe = RECIPES.get(name, Recipe("float32"))
    lazily = attends_by_kernel(CONFIGS[name].cache_layout, recipe)
    for budget in (1, 10_000, 300_000, 2_000_000, 1 << 40):
        shape = shape_for(name, recipe, budget, ladders=LADDERS)
        pages, sizes = shape.pages, page_bytes(shape.layout, "float32", shape.pages.slots)
        longest = shape.paging.count(CONTEXT)
        for count, size, least in (
            (pages.whole - 1, sizes.whole, longest),
            (pages.local - 1, sizes.local, shape.local_entries if sizes.local else 0),
        ):
            assert count >= least
            if count > least:
                assert count == 1 << (count.bit_length() - 1)
                assert count * size <= (budget if lazily else budget // 2)
        assert shape_for(name, recipe, budget + budget // 1000, ladders=LADDERS).pages == pages
        whole = pages.whole * sizes.whole + pages.local * sizes.local
        assert smallest_conversation(shape) == (bytes_of_conversation(shape, 1) if lazily else whole)
    assert pages.whole <= MOST_PAGES + 1
    assert lazily or pages.whole == 1 + 16 * LADDERS.rows[-1] * longest, "sixteen times what rows can use"


def test_a_table_of_local_pages_has_room_for_the_window_and_the_longest_chunk_behind_it():
    for name, window in (("local and global", 8), ("a wide window", 40), ("all global", None)):
        shape = shape_for(name, Recipe("float32"), ladders=LADDERS)
        chunk, slots = longest_chunk(shape, LADDERS), shape.pages.slots
        assert (shape.picks, chunk) == (LADDERS.picks, LADDERS.longest_chunk)
        if window is None:
            assert (shape.local_entries, shape.pages.local) == (1, 1)
        for start in range(CONTEXT - chunk) if window else ():
            seen = range(max(0, start - window + 1) // slots, (start + chunk - 1) // slots + 1)
            assert len(seen) <= shape.local_entries, "a page of the chunk would be one of its window's"


def test_a_conversation_takes_its_pages_and_of_local_layers_those_of_the_window():
    shape = shape_for("local and global", Recipe("float32"), ladders=LADDERS)
    sizes = page_bytes(shape.layout, "float32", 8)
    assert bytes_of_conversation(shape, 0) == 0
    assert bytes_of_conversation(shape, 1) == sizes.whole + sizes.local
    assert bytes_of_conversation(shape, 100) == 13 * sizes.whole + 2 * sizes.local
