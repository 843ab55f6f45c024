"""``LedgerEntry``: a model's line in the ledger, with its bytes and its uses."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol


class State(StrEnum):
    """The state of a model in memory."""

    ABSENT = "absent"
    LOADING = "loading"  # its bytes are reserved
    RESIDENT = "resident"


class KvUse(NamedTuple):
    """The bytes of a model's conversations."""

    total: int = 0
    busy: int = 0  # those of them that running requests own


class TakesKv(Protocol):
    """The part of a model's conversations on its device that the ledger reads."""

    def nbytes(self) -> int:
        """Return the bytes of all conversations."""
        ...

    def busy(self) -> int:
        """Return the bytes of running requests' conversations."""
        ...


def meet(one: Hashable, other: Hashable) -> bool:
    """Return True if two placements have a device in common, whose memory they share."""
    return one == other or not set(getattr(one, "devices", ())).isdisjoint(getattr(other, "devices", ()))


@dataclass(eq=False)
class LedgerEntry:
    """One model. Only the owner thread changes it."""

    name: str
    home: Hashable  # the placement, which has a budget
    weights: int  # bytes on each of its devices
    floor: int  # bytes of the smallest conversation: a resident model can always run one
    workspace: int  # bytes that its programs need while they run
    returns: bool  # the engine can load it again, so it may be evicted
    keep_alive: float | None = None  # seconds that it stays unused; None: until the memory is needed
    devices: int = 1  # the number of devices that it is divided among
    chosen: str = ""  # the reason for that number; "": no number was set
    not_mapped: str = ""  # why its weights are not in a mapped file; "": they are, or it is not in memory
    extra_bytes: int = 0  # of encoders of pictures and sounds that are in memory or being read, and of adapters
    adapters: tuple[str, ...] = ()  # the names of those on the device
    pinned: bool = False
    leaving: bool = False  # it is evicted as soon as it is unused
    state: State = State.ABSENT
    holds: int = 0  # explicit leases
    running: int = 0  # requests, including those of dispatches in flight
    last_used: float = 0.0
    guarded_until: float = 0.0  # just loaded, and kept for its first use
    load_s: float = 0.0  # the seconds of its last load
    conversations: TakesKv | None = field(default=None, repr=False)  # None: the model is not in memory
    seen_kv: int = 0  # bytes of its conversations when the owner thread last published them, for other threads
    seen_host_kv: int = 0  # bytes of those in host memory
    seen_read_s: float = 0.0  # seconds to read a token; 0: never measured

    @property
    def leases(self) -> int:
        """The number of its uses. It is not evicted while there are any."""
        return self.holds + self.running

    def kv(self) -> KvUse:
        """Return the current bytes of the model's conversations."""
        there = self.conversations
        return KvUse() if there is None else KvUse(there.nbytes(), there.busy())

    @property
    def need(self) -> int:
        """The bytes that must be free before the model is loaded."""
        return self.weights + self.workspace + self.floor

    @property
    def kv_bytes(self) -> int:
        """The bytes of its conversations, at least those reserved for the smallest."""
        return 0 if self.state is State.ABSENT else max(self.kv().total, self.floor)

    @property
    def nbytes(self) -> int:
        """The bytes that the model takes now."""
        if self.state is State.ABSENT:
            return 0
        return self.weights + self.extra_bytes + self.workspace + self.kv_bytes

    @property
    def idle_kv(self) -> int:
        """The bytes that evicting its idle conversations would free."""
        use = self.kv()
        return max(0, max(use.total, self.floor) - max(use.busy, self.floor)) if self.state is State.RESIDENT else 0

    @property
    def idle(self) -> bool:
        """True if the model may be evicted: it is unused, not pinned, and can be loaded again."""
        return self.state is State.RESIDENT and self.returns and not self.pinned and not self.leases

    def evictable(self, now: float) -> bool:
        """Return True if the model may be evicted to make room. It is guarded between its load and its first use."""
        return self.idle and now >= self.guarded_until

    def reset(self) -> None:
        """Note that the model is not in memory any more."""
        self.state, self.leaving, self.conversations, self.seen_kv = State.ABSENT, False, None, 0
        self.extra_bytes, self.adapters = 0, ()
