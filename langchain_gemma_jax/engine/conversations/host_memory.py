"""Copies of arrays between a device and its host's memory, by the way that this platform supports.

The device lists its kinds of memory, and each is tried: a CPU has three names for the same memory, a GPU has no
unpinned kind, a TPU has both. If none works, the bytes are kept in numpy arrays.
"""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import numpy as np

from langchain_gemma_jax.engine.device.sequence_kv import shardings
from langchain_gemma_jax.models.seams.placement import Placement

Tree = TypeVar("Tree")

PREFERRED = ("pinned_host", "unpinned_host")  # from pinned memory a device fetches by itself


class HostMemory:
    """The host's memory, for the devices of a placement."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self.parts = len(placement.devices)  # host memory holds the parts of all devices
        self.usable = placement.here  # arrays with parts on another host cannot be moved by this one
        device = placement.devices[0]
        kinds = {memory.kind for memory in device.addressable_memories()} - {device.default_memory().kind}
        kinds = kinds if self.usable else set()
        self._kind = next((kind for kind in PREFERRED if kind in kinds and _works(placement, kind)), None)

    @property
    def kind(self) -> str:
        """The kind of memory; "numpy" if the platform has none that works."""
        return "numpy" if self._kind is None else self._kind

    def put(self, tree: Tree) -> Tree:
        """Return a copy in host memory, complete when this returns."""
        if self._kind is None:
            return jax.tree.map(np.array, tree)  # type: ignore[no-any-return]
        places = jax.tree.map(lambda home: home.with_memory_kind(self._kind), shardings(self._placement, tree))
        return jax.block_until_ready(jax.device_put(tree, places))  # type: ignore[no-any-return]

    def fetch(self, tree: Tree) -> Tree:
        """Return a copy on the device, complete when this returns."""
        return jax.block_until_ready(jax.device_put(tree, shardings(self._placement, tree)))  # type: ignore[no-any-return]


def _works(placement: Placement, kind: str) -> bool:
    """Return True if bytes come back unchanged from this kind of memory."""
    pattern = np.arange(1024, dtype=np.int32)
    try:
        home = placement.sharding(pattern.shape)
        there: Any = jax.device_put(jax.device_put(pattern, home), home.with_memory_kind(kind))
        back = jax.device_put(there, home)
        same = bool(np.array_equal(np.asarray(back), pattern))
    except Exception:  # noqa: BLE001  each platform raises its own errors
        return False
    return same and there.sharding.memory_kind == kind
