"""``KvHoldings``: the arrays of one model's conversations on its device, the operations on them, and their bytes.

Only the owner thread runs this code, except ``copied``. Byte counts are computed from shapes, without the device.
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
    """The arrays of one model's conversations on the device. ``KvStore`` decides if there is room for more."""

    shape: Shape
    library: Library
    device: DeviceAccess
    ladders: Ladders
    metrics: Metrics
    index: PrefixIndex = field(init=False)
    changed: bool = False  # since the byte counts were last read
    _padding: dict[int, list[SequenceKV]] = field(default_factory=lambda: defaultdict(list))  # rows that fill up a step

    def __post_init__(self) -> None:
        self.index = PrefixIndex(Rings(sequence_kv.ring_size(self.shape.layout, self.ladders.capacities[-1])))

    # Bytes.

    def nbytes(self) -> int:
        """Return the bytes of all arrays."""
        padding = sum(self.bytes_for(capacity) * len(rows) for capacity, rows in self._padding.items())
        return self.index.nbytes() + padding

    def busy(self) -> int:
        """Return the bytes of running requests' conversations."""
        return sum(bytes_of(resident) for resident in self.index.residents if resident.leased)

    def bytes_for(self, capacity: int) -> int:
        """Return the bytes of a sequence of this capacity on each device."""
        shape = self.shape
        return sequence_kv.sequence_bytes(shape.layout_of_a_device, capacity, shape.max_context, shape.recipe.kv_dtype)

    def snapshot_bytes(self, capacity: int) -> int:
        """Return the bytes of a copy of such a sequence's rings on each device."""
        return sequence_kv.snapshot_bytes(self.shape.layout_of_a_device, capacity, self.shape.recipe.kv_dtype)

    # Operations on one conversation.

    def run(self, key: ProgramKey, *args: object) -> SequenceKV:
        """Run one of the programs on a whole conversation."""
        self.changed = True  # everything that is made or resized comes through here ...
        found: SequenceKV = self.device.run(key, self.library.of(key), *args)
        return found

    def start(self, scope: str, capacity: int) -> Resident:
        """Make an empty conversation."""
        return self._add(scope, capacity, self.run(("empty", capacity)), token_keys(()))

    def fork(self, source: Resident, reuse: Reuse, capacity: int) -> Resident:
        """Make a copy of a conversation's first tokens. The conversation itself does not change."""
        handle = self._with_rings(self._copy(source, capacity), capacity, reuse.snapshot)
        resident = self._add(source.scope, capacity, handle, source.keys[: reuse.length])
        self.index.touch(source)
        resident.written = (source if reuse.snapshot is None else reuse.snapshot).written
        resident.system = min(source.system, reuse.length)
        resident.snapshots = self.index.rings.carried(source.snapshots, reuse.length)
        return resident

    def cut(self, resident: Resident, length: int, snapshot: Snapshot | None) -> None:
        """Drop all but a conversation's first tokens."""
        try:
            resident.handle = self._with_rings(cast("SequenceKV", resident.handle), resident.capacity, snapshot)
        except BaseException:
            self.drop(resident)  # its arrays were donated
            raise
        self.index.truncate(resident, length, snapshot)
        self.changed = True  # snapshots may have been dropped

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
        """Drop a conversation."""
        self.index.remove(resident)
        self.changed = True  # ... and everything that is dropped comes through here
        self.metrics.evictions += 1
        free(resident.handle)

    def clear(self) -> None:
        """Drop everything, including running requests' conversations."""
        self.changed = True
        for resident in self.index.residents:
            self.index.remove(resident)
            free(resident.handle)
            for kept in resident.snapshots:
                free(kept.handle)
        self._padding.clear()

    # Padding sequences, for the unused rows of a step.

    def padding(self, capacity: int, rows: int | None = None) -> list[SequenceKV]:
        """Take up to ``rows`` padding sequences, or all. They may be donated; ``put_padding`` returns them."""
        spare = self._padding[capacity]
        taken, self._padding[capacity] = spare[:rows], [] if rows is None else spare[rows:]
        return taken

    def put_padding(self, capacity: int, sequences: Iterable[SequenceKV]) -> None:
        """Add padding sequences, returned or new."""
        self._padding[capacity].extend(sequences)

    def drop_padding(self) -> None:
        """Free all padding sequences."""
        self.changed |= bool(self._padding)
        self._padding.clear()

    def _add(self, scope: str, capacity: int, handle: SequenceKV, keys: array[int]) -> Resident:
        resident = Resident(scope, capacity, self.bytes_for(capacity), handle, keys)
        self.index.add(resident)
        return resident

    def _copy(self, resident: Resident, capacity: int) -> SequenceKV:
        return self.run(("resize", resident.capacity, capacity), resident.handle)

    def _with_rings(self, handle: SequenceKV, capacity: int, snapshot: Snapshot | None) -> SequenceKV:
        """Return a sequence with the rings of a snapshot, if there is one. The given sequence is donated."""
        if snapshot is None:
            return handle
        arrays = cast("RingArrays", snapshot.handle)
        return self.run(("restore", arrays[0].keys.shape[2], capacity), handle, arrays)


_one_at_a_time = threading.Lock()  # XLA ends the process if an array is deleted while another thread reads it


def free(tree: object) -> None:
    """Delete arrays now, even if other objects refer to them. This waits for ``copied`` in other threads."""
    for leaf in jax.tree.leaves(tree):
        with _one_at_a_time:
            if not leaf.is_deleted():
                leaf.delete()


def copied(array: jax.Array) -> npt.NDArray[np.generic]:
    """Return an array's numbers on the host. Any thread may call it; ``free`` waits for it.

    Raises:
        RuntimeError: the array was deleted before.
    """
    with _one_at_a_time:
        return np.array(np.asarray(array))
