"""``AdapterSlots``: the adapters of one model that are on its device. For the owner thread.

All lie in one stack, which is made when the first is asked for and goes when the model leaves. A request has a slot
from its admission to its end; an adapter without requests stays until its slot is needed for another. A program's shape
depends on the slots and the rank alone, so another adapter is no other program. The rank grows to that of the largest
adapter, on a short ladder.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import numpy as np

from langchain_gemma_jax.engine.base.program_key import PUT_ADAPTER, TAKE_ADAPTERS, ProgramKey, adapted
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.steps.media_encoding import Memory
from langchain_gemma_jax.models.adapters.adapter import RANKS, Adapter
from langchain_gemma_jax.models.seams.adapters import AdaptedLayers, AdaptedParams, Stacks, stack_shapes

SLOTS = 4
"""Adapters of a model that can be in use at a time."""

_FLOAT = 4  # bytes


class AdapterSlots:
    """The adapters of one model on its device, and which request has which."""

    def __init__(
        self,
        layers: AdaptedLayers,
        device: DeviceAccess,
        library: Library,
        memory: Memory,
        changed: Callable[[tuple[str, ...]], None],
        slots: int = SLOTS,
    ) -> None:
        """``changed`` is called with the names of the adapters that are on the device, whenever these change."""
        self._layers, self._device, self._library, self._memory, self._changed = (
            layers,
            device,
            library,
            memory,
            changed,
        )
        self._count = slots
        self._rank = 0  # of the stacks; 0: there are none
        self._stacks: Stacks | None = None
        self._slots: dict[Adapter, int] = {}  # from 1; the least recently asked for first
        self._users: dict[Request, Adapter] = {}

    @property
    def stacked(self) -> tuple[int, int]:
        """The number of slots, and their rank."""
        return self._count, self._rank

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self._nbytes(self._rank)

    def there(self, request: Request) -> bool | None:
        """Return True if a request has a slot with its adapter: it is given one. False: all are in use. None: no room.

        A request keeps its slot until ``release``.
        """
        adapter = cast("Adapter", request.asked.prompt.adapter)
        if self._users.get(request) is adapter:
            return True
        if adapter.rank > self._rank and not self._grow(adapter.rank):
            return None
        slot = self._slots.pop(adapter, None)
        if slot is None:
            if (slot := self._free()) is None:
                return False
            self._put(adapter, slot)
        self._slots[adapter] = slot
        self._users[request] = adapter
        self._changed(tuple(each.name for each in self._slots))
        return True

    def release(self, request: Request) -> None:
        """Note that a request is over, or starts again."""
        self._users.pop(request, None)

    def params(self, params: Any, requests: Sequence[Request], rows: int) -> AdaptedParams:
        """Return what a program takes in the place of the parameters, for rows of which the first are requests'."""
        slots = [0 if (own := self._users.get(each)) is None else self._slots[own] for each in requests]
        each_row = (*slots, *(0,) * (rows - len(slots)))
        there = self._device.put_once(("adapters", each_row), lambda: np.array(each_row, np.int32))
        return AdaptedParams(params, cast("Stacks", self._stacks), there)

    def forget(self) -> None:
        """Drop all of it, as the model leaves."""
        self._stacks, self._rank = None, 0
        self._slots.clear()
        self._users.clear()
        self._changed(())

    def _free(self) -> int | None:
        """Return a slot that is unused; the adapter that was used least recently makes way. None: there is none."""
        if missing := set(range(1, self._count + 1)) - set(self._slots.values()):
            return min(missing)
        used = set(self._users.values())
        idle = next((adapter for adapter in self._slots if adapter not in used), None)
        return None if idle is None else self._slots.pop(idle)

    def _grow(self, rank: int) -> bool:
        """Have stacks of at least this rank, with all adapters in them that there are. False: there is no room."""
        wanted = RANKS[bisect_left(RANKS, rank)]
        more = self._nbytes(wanted) - self.nbytes
        if not self._memory.take_extra(more):
            return False
        self._rank = wanted
        shapes = [stack_shapes(self._layers, self._count, wanted)]
        zeros = jax.tree.map(lambda shape: np.zeros(shape, np.float32), shapes, is_leaf=_is_shape)[0]
        self._stacks = None  # before the larger ones are there
        self._stacks = self._device.put(zeros)
        self._device.allow([*_keys(self._device.bound, self._count, wanted), (PUT_ADAPTER, self._count, wanted)])
        for adapter, slot in self._slots.items():
            self._put(adapter, slot)
        return True

    def _put(self, adapter: Adapter, slot: int) -> None:
        key = (PUT_ADAPTER, self._count, self._rank)
        one, number = self._device.put((adapter.slot(self._layers, self._rank), np.array(slot - 1, np.int32)))
        program = self._library.of(key, self._device.waited)
        stacks, self._stacks = self._stacks, None  # they are given away, also if it fails
        self._stacks = self._device.run(key, program, stacks, number, one)

    def _nbytes(self, rank: int) -> int:
        shapes = [stack_shapes(self._layers, self._count, rank)] if rank else []
        leaves = jax.tree.leaves(shapes, is_leaf=_is_shape)
        return sum(_FLOAT * int(np.prod(shape)) for shape in leaves)


def _keys(known: frozenset[ProgramKey], slots: int, rank: int) -> list[ProgramKey]:
    return [adapted(key, slots, rank) for key in known if key[0] in TAKE_ADAPTERS]


def _is_shape(node: object) -> bool:
    return isinstance(node, tuple) and bool(node) and all(isinstance(size, int) for size in node)
