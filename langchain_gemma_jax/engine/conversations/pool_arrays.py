"""``PoolArrays``: one model's pool on its device, and the tables of pages that programs are given with it.

Only the owner thread runs this code. Which page is whose is the business of ``kv_holdings``.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_door import Content, RunProgram, page_door
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.requests.resident import Resident


class PoolArrays:
    """The pool of a model: made when it is first asked for, donated to programs, and set to what they return."""

    def __init__(self, shape: Shape, device: DeviceAccess, run: RunProgram) -> None:
        """``run(key, ...)`` runs one of the model's programs."""
        self._shape, self._device, self._run = shape, device, run
        self._door = page_door(shape, device, run)
        self._pool: KvPool | None = None

    @property
    def pool(self) -> KvPool:
        """The pool. Programs are given it, and ``pool`` is set to what they return."""
        if self._pool is None:
            self._pool = self._run(("empty",))
        return self._pool

    @pool.setter
    def pool(self, new: KvPool) -> None:
        self._pool = new

    @property
    def is_lost(self) -> bool:
        """True if a program that was given the pool failed, so that what was in it is gone."""
        return self._pool is not None and self._pool.ids.is_deleted()

    def tables(self, rows: Sequence[Resident], count: int, capacity: int) -> Tables:
        """Return the pages of rows on the device, for ``count`` rows of which the last ones may be unused.

        ``capacity``: the tokens that the global layers' tables reach.
        """

        def make() -> Tables:
            entries, local_entries = self._shape.paging.count(capacity), self._shape.local_entries
            whole, local = np.zeros((count, entries), np.int32), np.zeros((count, local_entries), np.int32)
            for row, resident in enumerate(rows):
                some = min(len(resident.whole), entries)
                whole[row, :some] = resident.whole[:some]
                for page in sorted(resident.local):  # of two at one place, the later is in the window
                    local[row, page % local_entries] = resident.local[page]
            return Tables(whole, local)  # type: ignore[arg-type]  # they become arrays on the device

        key = ("tables", count, capacity, *((resident.number, resident.version) for resident in rows))
        found: Tables = self._device.put_once(key, make)
        return found

    def read(self, pages: Sequence[int], *, local: bool) -> list[Content]:
        """Return copies of what is in pages."""
        return self._door.read(self.pool, pages, local=local)

    def write(self, pages: Sequence[int], contents: Sequence[Content], *, local: bool) -> None:
        """Write contents to pages."""
        self.pool = self._door.write(self.pool, pages, contents, local=local)

    def copy(self, page: int, target: int, *, local: bool) -> None:
        """Copy a page to another."""
        self.pool = self._door.copy(self.pool, page, target, local=local)

    def give_back(self, pages: Sequence[int], *, local: bool) -> None:
        """Give the memory of unused pages back to the system."""
        if self._pool is not None and not self.is_lost:
            self._door.give_back(self._pool, pages, local=local)

    def drop(self) -> None:
        """Delete the pool, and what programs were given with it."""
        free(self._pool)
        self._pool = None
        self._device.forget_kept()


def free(tree: object) -> None:
    """Delete arrays now, even if other objects refer to them."""
    for leaf in jax.tree.leaves(tree):
        if not leaf.is_deleted():
            leaf.delete()
