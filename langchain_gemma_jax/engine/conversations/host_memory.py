"""Moves arrays between a device and its host's memory, however this platform does that.

Which kinds of memory there are is asked of the device, and whether one works is tried: a CPU has three names
for the same memory, a GPU has no unpinned kind, a TPU has both. Where none works, numpy holds the bytes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import numpy as np

Tree = TypeVar("Tree")

PREFERRED = ("pinned_host", "unpinned_host")  # from pinned memory a device fetches by itself


class HostMemory:
    """The host's memory, as seen from a device."""

    def __init__(self, device: jax.Device) -> None:
        self._home = jax.sharding.SingleDeviceSharding(device)
        kinds = {memory.kind for memory in device.addressable_memories()} - {device.default_memory().kind}
        working = (place for kind in PREFERRED if kind in kinds and (place := _works(device, kind)) is not None)
        self._place = next(working, None)

    @property
    def kind(self) -> str:
        """The kind of memory; "numpy" where the platform offers none that works."""
        return "numpy" if self._place is None else str(self._place.memory_kind)

    def put(self, tree: Tree) -> Tree:
        """A copy in host memory, complete when this returns."""
        if self._place is None:
            return jax.tree.map(np.array, tree)  # type: ignore[no-any-return]
        return jax.block_until_ready(jax.device_put(tree, self._place))  # type: ignore[no-any-return]

    def fetch(self, tree: Tree) -> Tree:
        """A copy on the device, complete when this returns."""
        return jax.block_until_ready(jax.device_put(tree, self._home))  # type: ignore[no-any-return]


def _works(device: jax.Device, kind: str) -> jax.sharding.SingleDeviceSharding | None:
    """Where to put what goes there, if bytes come back from it as they were."""
    pattern = np.arange(1024, dtype=np.int32)
    try:
        place = jax.sharding.SingleDeviceSharding(device, memory_kind=kind)
        there: Any = jax.device_put(jax.device_put(pattern, device), place)
        back = jax.device_put(there, jax.sharding.SingleDeviceSharding(device))
        same = bool(np.array_equal(np.asarray(back), pattern))
    except Exception:  # noqa: BLE001  each platform has its own way to refuse
        return None
    return place if same and there.sharding.memory_kind == kind else None
