"""``DeviceUse``: the memory of each device beside what may be used and what is, for people and programs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, State


class DeviceUse(NamedTuple):
    """The bytes of one device."""

    device: str  # such as "cuda:0"
    capacity: int  # of the device, as far as this process may use it; of the host, if that is where its memory is
    budget: int  # that models and their conversations may take
    used: int  # that they take


class DeviceLimits(NamedTuple):
    """The bytes of each device of a place."""

    capacity: int
    budget: int


def device_uses(entries: Iterable[LedgerEntry], limits: Callable[[Hashable], DeviceLimits]) -> tuple[DeviceUse, ...]:
    """Return the use of each device that a model is on. Any thread may call it: it reads what was published last."""
    found: dict[str, DeviceUse] = {}
    for entry in entries:
        if entry.state is State.ABSENT:
            continue
        capacity, budget = limits(entry.home)
        used = entry.weights + entry.extra_bytes + entry.workspace + max(entry.seen_kv, entry.floor)
        for device in getattr(entry.home, "own", ()):
            name = f"{device.platform}:{device.id}"
            before = found.get(name, DeviceUse(name, capacity, budget, 0))
            # One device may be a place by itself and a part of another, which has less of it.
            found[name] = DeviceUse(
                name, min(before.capacity, capacity), min(before.budget, budget), before.used + used
            )
    return tuple(sorted(found.values()))
