"""The keys and values of one model's conversations on its device: arrays, what is done with them, what they take.

Only the owner thread comes here, but for ``copied``. Byte counts follow from shapes; nothing is asked of the device.
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.host_store import bytes_of
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse, Rings
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.device.sequence_kv import RingArrays, SequenceKV
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot


@dataclass
class KvHoldings:
    """What one model's conversations hold on the device. Whether there is room for more is for others to say."""

    shape: Shape
    library: Library
    device: DeviceAccess
    ladders: Ladders
    metrics: Metrics
    index: PrefixIndex = field(init=False)
    changed: bool = False  # since somebody looked at the byte counts
    _padding: dict[int, list[SequenceKV]] = field(default_factory=lambda: defaultdict(list))  # rows that fill up a step

    def __post_init__(self) -> None:
        self.index = PrefixIndex(Rings(sequence_kv.ring_size(self.shape.layout, self.ladders.capacities[-1])))

    # What is held.

    def nbytes(self) -> int:
        """Return the bytes of all of it."""
        padding = sum(self.bytes_for(capacity) * len(rows) for capacity, rows in self._padding.items())
        return self.index.nbytes() + padding

    def busy(self) -> int:
        """Return what running requests own."""
        return sum(bytes_of(resident) for resident in self.index.residents if resident.leased)

    def bytes_for(self, capacity: int) -> int:
        """Return what a sequence of this capacity takes, of each device."""
        shape = self.shape
        return sequence_kv.sequence_bytes(shape.layout_of_a_device, capacity, shape.max_context, shape.recipe.kv_dtype)

    def snapshot_bytes(self, capacity: int) -> int:
        """Return what a copy of the rings of such a sequence takes."""
        return sequence_kv.snapshot_bytes(self.shape.layout_of_a_device, capacity, self.shape.recipe.kv_dtype)

    # What is done with one conversation.

    def run(self, key: ProgramKey, *args: object) -> SequenceKV:
        """One of the programs for a conversation as a whole."""
        self.changed = True  # nothing is made or resized without coming here ...
        found: SequenceKV = self.device.run(key, self.library.of(key), *args)
        return found

    def start(self, scope: str, capacity: int) -> Resident:
        """Make an empty conversation."""
        return self._add(scope, capacity, self.run(("empty", capacity)), token_keys(()))

    def fork(self, source: Resident, reuse: Reuse, capacity: int) -> Resident:
        """A copy of a conversation's first tokens. The conversation stays as it is."""
        handle = self._with_rings(self._copy(source, capacity), capacity, reuse.snapshot)
        resident = self._add(source.scope, capacity, handle, source.keys[: reuse.length])
        self.index.touch(source)
        resident.written = (source if reuse.snapshot is None else reuse.snapshot).written
        resident.system = min(source.system, reuse.length)
        resident.snapshots = self.index.rings.carried(source.snapshots, reuse.length)
        return resident

    def cut(self, resident: Resident, length: int, snapshot: Snapshot | None) -> None:
        """Forget what is behind its first tokens."""
        try:
            resident.handle = self._with_rings(cast("SequenceKV", resident.handle), resident.capacity, snapshot)
        except BaseException:
            self.drop(resident)  # its arrays were given away
            raise
        self.index.truncate(resident, length, snapshot)
        self.changed = True  # snapshots may be gone

    def resize(self, resident: Resident, capacity: int) -> None:
        """Give a conversation another capacity."""
        old = resident.handle
        resident.handle = self._copy(resident, capacity)
        free(old)
        resident.capacity, resident.nbytes = capacity, self.bytes_for(capacity)

    def keep_rings(self, resident: Resident, nbytes: int) -> None:
        """Keep a copy of a conversation's rings as they are now."""
        arrays = self.run(("snapshot", resident.capacity), resident.handle)
        self.index.add_snapshot(resident, Snapshot(len(resident.keys), resident.written, nbytes, arrays))

    def drop(self, resident: Resident) -> None:
        """Forget a conversation."""
        self.index.remove(resident)
        self.changed = True  # ... and nothing is given up without coming here
        self.metrics.evictions += 1
        free(resident.handle)

    def clear(self) -> None:
        """Forget everything, what running requests own too."""
        self.changed = True
        for resident in self.index.residents:
            self.index.remove(resident)
            free(resident.handle)
            for kept in resident.snapshots:
                free(kept.handle)
        self._padding.clear()

    # Sequences of nobody's, for the rows of a step that nobody needs.

    def padding(self, capacity: int, rows: int | None = None) -> list[SequenceKV]:
        """Take so many of them, or all; as far as there are any. They are given away; see ``put_padding``."""
        spare = self._padding[capacity]
        taken, self._padding[capacity] = spare[:rows], [] if rows is None else spare[rows:]
        return taken

    def put_padding(self, capacity: int, sequences: Iterable[SequenceKV]) -> None:
        """Take back sequences that were given away, or new ones."""
        self._padding[capacity].extend(sequences)

    def drop_padding(self) -> None:
        """Forget all of them."""
        self.changed |= bool(self._padding)
        self._padding.clear()

    def _add(self, scope: str, capacity: int, handle: SequenceKV, keys: array[int]) -> Resident:
        resident = Resident(scope, capacity, self.bytes_for(capacity), handle, keys)
        self.index.add(resident)
        return resident

    def _copy(self, resident: Resident, capacity: int) -> SequenceKV:
        return self.run(("resize", resident.capacity, capacity), resident.handle)

    def _with_rings(self, handle: SequenceKV, capacity: int, snapshot: Snapshot | None) -> SequenceKV:
        """A sequence that is given away, with the rings of a snapshot; as it is without one."""
        if snapshot is None:
            return handle
        arrays = cast("RingArrays", snapshot.handle)
        return self.run(("restore", arrays[0].keys.shape[2], capacity), handle, arrays)


_one_at_a_time = threading.Lock()  # XLA ends the process where an array is deleted while another thread reads it


def free(tree: object) -> None:
    """Delete arrays now, whoever else still refers to them; after whoever is copying one."""
    for leaf in jax.tree.leaves(tree):
        with _one_at_a_time:
            if not leaf.is_deleted():
                leaf.delete()


def copied(array: jax.Array) -> npt.NDArray[np.generic]:
    """An array's numbers on the host, taken by any thread while nobody deletes it.

    Raises:
        RuntimeError: it was deleted before.
    """
    with _one_at_a_time:
        return np.array(np.asarray(array))
