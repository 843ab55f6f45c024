"""Pools of pages in which every number is another one, for tests that look at where numbers go."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np

from langchain_gemma_jax.engine.device.page_pool import KvPool, abstract_pool
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from tests.engine.tiny import CONFIGS, CONTEXT, RECIPES

COUNTS = PageCounts(whole=12, local=9, slots=8)


def shape_of(name: str, dtype: str = "float32") -> Shape:
    """Return the shape of one of the tiny models, with few pages."""
    recipe = Recipe(dtype, cache_dtype=RECIPES.get(name, Recipe()).cache_dtype)
    return Shape(Gemma(CONFIGS[name]), recipe, 320, CONTEXT, COUNTS)


def filled(shape: Shape, counts: PageCounts = COUNTS, first: int = 0) -> KvPool:
    """Return a pool whose arrays have the numbers from ``first`` on, or bits that differ where they are few."""
    numbers: Iterator[int] = iter(range(first, first + 1_000_000_000, 1_000_000))

    def array(spec: jax.ShapeDtypeStruct) -> jax.Array:
        bits = (np.arange(spec.size) + next(numbers)).reshape(spec.shape)
        few = spec.dtype.itemsize == 2
        given = (bits % 30_000).astype(np.uint16).view(spec.dtype) if few else bits.astype(spec.dtype)
        return jax.device_put(given, jax.devices()[0]).copy()  # numpy's own memory could not be given away

    pool: KvPool = jax.tree.map(array, abstract_pool(shape.layout, counts, shape.recipe.kv_dtype))
    return pool


def by_kind(shape: Shape, pool: KvPool) -> dict[bool, list[np.ndarray]]:
    """Return copies of a pool's arrays: of the local layers under True, of the global ones and the ids under False."""
    found: dict[bool, list[np.ndarray]] = {True: [], False: []}
    for layer, kept in zip(shape.layout, pool.layers, strict=True):
        if layer is not None and kept is not None:
            found[layer.window is not None] += [np.array(kept.keys), np.array(kept.values)]
    found[False].append(np.array(pool.ids))
    return found


def same(one: dict[bool, list[np.ndarray]], other: dict[bool, list[np.ndarray]]) -> bool:
    """Return True if all numbers are the same."""
    return all(
        len(one[local]) == len(other[local])
        and all(a.tobytes() == b.tobytes() for a, b in zip(one[local], other[local], strict=True))
        for local in (False, True)
    )
