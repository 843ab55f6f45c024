"""A conversation's arrays on disk: the choice of arrays to write, and a conversation made of arrays that were read.

The copies are made in background threads, of arrays that are not written to.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import cast

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.conversations.kv_holdings import KvHoldings, copied
from langchain_gemma_jax.engine.conversations.prefix_index import Rings
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.sequence_kv import RingArrays, SequenceKV
from langchain_gemma_jax.engine.prefix_store.stored_prefixes import PrefixArrays
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot
from langchain_gemma_jax.models.configuration.model_config import CacheLayout
from langchain_gemma_jax.models.seams.kv_cache import LayerKV, abstract_cache

MOST_MARKS = 256  # lengths at which one conversation can be continued, if it can be at any length
BLOCK = 64  # the fewest tokens between two of them


@dataclass(frozen=True)
class WhatToWrite:
    """A plan of writing a conversation's first tokens."""

    resident: Resident
    length: int
    rings: tuple[Snapshot | None, ...]  # the ring states to keep; None: its own
    marks: tuple[tuple[int, int, int | None], ...]  # length, position up to which rings were written, index in `rings`
    nbytes: int


def what_to_write(held: KvHoldings, resident: Resident, length: int, least: int) -> WhatToWrite | None:
    """Plan the writing of a conversation's first tokens. None: its rings do not hold the window that is needed.

    Args:
        held: the model's conversations.
        resident: the conversation.
        length: the number of tokens.
        least: the shortest length that is worth keeping.
    """
    rings = held.index.rings
    end, written = len(resident.keys), resident.written
    reached, snapshot = rings.reach(end, written, resident.snapshots, length)
    if reached != length:
        return None
    state = (end, written) if snapshot is None else (snapshot.end, snapshot.written)
    marks = _marks(rings, length, *state)
    kept: list[Snapshot | None] = [snapshot]
    # A caller may write the history differently from the answer. It is then continued from the turn before.
    known = {at for at, _, _ in marks}
    before = [each for each in resident.snapshots if least <= each.end < length and each.end not in known]
    if before:
        kept.append(before[-1])
        marks.append((before[-1].end, before[-1].written, 1))
    size = _bytes_of(held, length, resident.capacity, len(kept))
    if rings.size is None:
        return WhatToWrite(resident, length, (), tuple((at, wrote, None) for at, wrote, _ in marks), size)
    return WhatToWrite(resident, length, tuple(kept), tuple(marks), size)


def as_sequence(
    arrays: PrefixArrays, layout: CacheLayout, dtype: str, capacity: int, max_context: int, ids: array[int]
) -> SequenceKV | None:
    """Return arrays that were read as a conversation of this capacity. None: they do not fit this model."""
    length, header = arrays.stored.mark.length, arrays.stored.header
    if header.dtype != dtype or length > min(header.tokens, capacity) or length > len(ids):
        return None
    shapes = abstract_cache(layout, 1, sequence_kv.physical(capacity), dtype)
    globals_, rings = iter(arrays.globals), iter(arrays.rings)
    layers: list[LayerKV | None] = []
    try:
        for layer, shape in zip(layout, shapes, strict=True):
            if layer is None or shape is None:
                layers.append(None)
                continue
            source, most = (globals_, length) if layer.window is None else (rings, None)
            layers.append(LayerKV(*(_fitted(next(source), shape, most) for _ in range(2))))  # type: ignore[arg-type]
    except (StopIteration, ValueError):
        return None
    if next(globals_, None) is not None or next(rings, None) is not None:
        return None
    places = np.zeros(sequence_kv.physical(max_context), np.int32)
    places[:length] = ids[:length]
    return SequenceKV(tuple(layers), places)  # type: ignore[arg-type]


def _fitted(old: npt.NDArray[np.generic], shape: jax.ShapeDtypeStruct, most: int | None) -> npt.NDArray[np.generic]:
    """Copy the slots that both shapes have: see ``sequence_kv.resize``."""
    _, heads, slots, width = shape.shape
    if old.ndim != 3 or (old.shape[0], old.shape[2]) != (heads, width) or (most is not None and old.shape[1] < most):
        raise ValueError(f"expected {shape}, found {old.shape}")
    found = np.zeros(shape.shape, shape.dtype)
    count = min(slots, old.shape[1]) if most is None else most
    found[0, :, :count] = old[:, :count]
    return found


def _marks(rings: Rings, length: int, end: int, written: int) -> list[tuple[int, int, int | None]]:
    """Return the lengths that can be continued from with one state of the rings, the longest first."""
    step = BLOCK * max(1, -(-length // (BLOCK * MOST_MARKS)))
    lengths = {length, *range(step, length, step)}
    return [(at, written, 0) for at in sorted(lengths, reverse=True) if rings.restorable(end, written, at)]


def global_layers(held: KvHoldings) -> list[int]:
    """Return the indices of the global layers, which keep every token."""
    return [index for index, layer in enumerate(held.shape.layout) if layer is not None and layer.window is None]


def _bytes_of(held: KvHoldings, length: int, capacity: int, states: int) -> int:
    """Return the approximate bytes of a file with this number of ring states."""
    shape, dtype = held.shape, held.shape.recipe.kv_dtype
    rings = sequence_kv.snapshot_bytes(shape.layout, capacity, dtype)
    slots = sequence_kv.sequence_bytes(shape.layout, capacity, shape.max_context, dtype) - rings
    return slots * length // sequence_kv.physical(capacity) + rings * states


def copied_blocks(plan: WhatToWrite, sequence: SequenceKV, held: KvHoldings) -> list[npt.NDArray[np.generic]]:
    """Return the arrays of a file, copied to the host."""
    found = []
    for index in global_layers(held):
        layer = sequence.layers[index]
        if layer is not None:
            found += [np.array(np.asarray(each)[0, :, : plan.length]) for each in (layer.keys, layer.values)]
    local = sequence_kv.local_layers(held.shape.layout)
    for state in plan.rings:
        arrays = (
            [sequence.layers[index] for index in local] if state is None else list(cast("RingArrays", state.handle))
        )
        for ring in arrays:
            if ring is not None:
                found += [
                    copied(each)[0] for each in (ring.keys, ring.values)
                ]  # the owner thread may delete it at the same time
    return found
