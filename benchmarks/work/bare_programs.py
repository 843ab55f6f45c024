"""A model's device programs without an engine: a pool with room for some conversations, whose pages stand in a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from langchain_gemma_jax.engine.device.knobs import knobs, packed
from langchain_gemma_jax.engine.device.page_pool import Tables
from langchain_gemma_jax.engine.device.programs import RowSettings, Shape
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import PageCounts


def bare_shape(
    kind: Architecture, recipe: Recipe, capacity: int, *, chunk: int, rows: int = 1, loop_steps: int = 1
) -> Shape:
    """Return the shape of programs for conversations of ``capacity`` tokens, read in chunks of up to ``chunk``."""
    bare = Shape(kind, recipe, kind.vocab_size, capacity, PageCounts(1, 1), loop_steps=loop_steps, picks=1)
    entries = bare.paging.entries(chunk, capacity)
    counts = PageCounts(1 + rows * bare.paging.count(capacity), 1 + rows * entries)
    return replace(bare, pages=counts, local_entries=entries)


def bare_tables(shape: Shape, rows: int = 1) -> Tables:
    """Return the tables of rows, of which each has pages of its own."""
    kinds = shape.paging.count(shape.max_context), shape.local_entries
    tables = [1 + np.arange(rows * each, dtype=np.int32).reshape(rows, each) for each in kinds]
    return Tables(*tables)  # type: ignore[arg-type]  # they become arrays on the device


def greedy_rows(vocab_size: int, rows: int = 1) -> RowSettings:
    """Return the settings of rows that take the best token, of all."""
    words = np.full(-(-vocab_size // 32), 0xFFFFFFFF, np.uint32)
    numbers = packed(knobs(seed=0, prompt_length=0, temperature=0.0))
    return RowSettings(np.stack([numbers] * rows), (words,) * rows)  # type: ignore[arg-type]  # as above
