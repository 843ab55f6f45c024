"""A conversation as the arrays of a file: the choice of what to write, and pages made of arrays that were read.

A file has, of each global layer, the keys and values of all tokens, and of each local layer those of the pages before
one or two lengths, its *states*.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.pages import Paging
from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings
from langchain_gemma_jax.engine.device.page_door import Content
from langchain_gemma_jax.engine.prefix_store.prefix_file import PrefixHeader
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import PrefixArrays
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout

MOST_MARKS = 256  # lengths at which one conversation can be continued, if it can be at any length
BLOCK = 64  # the fewest tokens between two of them

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class WhatToWrite:
    """A plan of writing a conversation's first tokens."""

    resident: Resident
    length: int
    states: tuple[range, ...]  # the local pages of each state
    marks: tuple[tuple[int, int | None], ...]  # lengths that can be continued from, each with its state
    nbytes: int


def what_to_write(held: KvHoldings, resident: Resident, length: int, least: int) -> WhatToWrite | None:
    """Plan the writing of a conversation's first tokens. None: the window that is needed is not kept.

    Args:
        held: the model's conversations.
        resident: the conversation.
        length: the number of tokens.
        least: the shortest length that is worth keeping.
    """
    paging = held.paging
    if paging.reach(resident.local, length) != length:
        return None
    size = paging.count(length) * held.sizes.whole
    if paging.window is None:
        return WhatToWrite(resident, length, (), tuple((at, None) for at in _lengths(length)), size)
    states = [paging.local(length)]
    marks = [(at, 0) for at in _lengths(length) if _holds(states[0], paging.local(at))]
    # A caller may write the history differently from the answer. It is then continued from the turn before.
    known = {at for at, _ in marks}
    before = [turn for turn in resident.turns if least <= turn < length and turn not in known]
    before = [turn for turn in before if paging.reach(resident.local, turn) == turn]
    if before:
        states.append(paging.local(before[-1]))
        marks.append((before[-1], 1))
    size += sum(map(len, states)) * held.sizes.local
    return WhatToWrite(resident, length, tuple(states), tuple(marks), size)


def _lengths(length: int) -> list[int]:
    """Return the lengths that a file may have marks of, the longest first."""
    step = BLOCK * max(1, -(-length // (BLOCK * MOST_MARKS)))
    return sorted({length, *range(step, length, step)}, reverse=True)


def _holds(state: range, wanted: range) -> bool:
    return all(page in state for page in wanted)


def global_layers(held: KvHoldings) -> list[int]:
    """Return the indices of the global layers, which keep every token."""
    return [index for index, layer in enumerate(held.shape.layout) if layer is not None and layer.window is None]


def global_dtype(layout: CacheLayout) -> str:
    """Return the dtype of the global layers' arrays, if it is another one than the local ones'; else no name."""
    return next((layer.stored_dtype("") for layer in layout if layer is not None and layer.window is None), "")


def copied_blocks(plan: WhatToWrite, held: KvHoldings) -> list[Array]:
    """Return the arrays of a file: each layer's keys and values ``[kv_head, token, head_dim]``, copied to the host."""
    whole, _ = held.read(plan.resident, range(held.paging.count(plan.length)), [])
    found = [_joined(column)[:, : plan.length] for column in list(zip(*whole, strict=True))[:-1]]  # without the ids
    for pages in plan.states:
        _, local = held.read(plan.resident, [], pages)
        found += [_joined(column) for column in zip(*local, strict=True)]
    return found


def _joined(pages: Sequence[Array]) -> Array:
    return np.concatenate(pages, axis=1)


def as_pages(
    arrays: PrefixArrays, layout: CacheLayout, paging: Paging, dtype: str, ids: array[int]
) -> tuple[list[Content], dict[int, Content]] | None:
    """Return arrays that were read as pages: all of the global layers, the window's of local ones. None: none fit."""
    length, header = arrays.stored.mark.length, arrays.stored.header
    owned = [layer for layer in layout if layer is not None]
    alike = (header.dtype, header.global_dtype) == (dtype, global_dtype(layout))
    if not alike or length > min(header.tokens, len(ids)):
        return None
    wanted = paging.local(length)
    of_whole, of_local = ([layer for layer in owned if (layer.window is None) is kind] for kind in (True, False))
    if not _fit(arrays.globals, of_whole, length) or not _fit(arrays.rings, of_local, len(wanted) * paging.slots):
        return None
    first = _first_page(header, arrays, paging)
    if of_local and not all(0 <= page - first < arrays.rings[0].shape[1] // paging.slots for page in wanted):
        return None
    places = np.zeros(paging.count(length) * paging.slots, np.int32)
    places[:length] = ids[:length]
    slots = paging.slots
    whole = [
        (*(_page(array, page, slots) for array in arrays.globals), places[page * slots : (page + 1) * slots])
        for page in range(paging.count(length))
    ]
    local = {page: tuple(_page(array, page - first, slots) for array in arrays.rings) for page in wanted}
    return whole, local


def _fit(arrays: Sequence[Array], layers: Sequence[CacheLayer], least: int) -> bool:
    """Return True if there are keys and values of all layers, of at least this number of tokens."""
    shapes = [(layer.kv_heads, layer.width) for layer in layers for _ in range(2)]
    found = [(array.shape[0], array.shape[2]) for array in arrays if array.ndim == 3 and array.shape[1] >= least]
    return found == shapes and len({array.shape[1] for array in arrays}) <= 1


def _first_page(header: PrefixHeader, arrays: PrefixArrays, paging: Paging) -> int:
    """Return the number of the first page of the state that was read: that of its longest mark."""
    ring = arrays.stored.mark.ring
    return paging.local(max(mark.length for mark in header.marks if mark.ring == ring)).start


def _page(array: Array, number: int, slots: int) -> Array:
    """Return the slots of one page, zeros behind the last token."""
    some = array[:, number * slots : (number + 1) * slots]
    page = np.zeros((array.shape[0], slots, array.shape[2]), array.dtype)
    page[:, : some.shape[1]] = some
    return page
