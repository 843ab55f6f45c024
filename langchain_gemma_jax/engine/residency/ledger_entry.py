"""A model in the books: what it takes, and who needs it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol


class State(StrEnum):
    """Whether a model is in memory."""

    ABSENT = "absent"
    LOADING = "loading"  # its bytes are reserved
    RESIDENT = "resident"


class KvUse(NamedTuple):
    """What a model's conversations take."""

    total: int = 0
    busy: int = 0  # of that: what running requests own


class TakesKv(Protocol):
    """A model's conversations on its device, as the books see them."""

    def nbytes(self) -> int:
        """Return the bytes that they take."""
        ...

    def busy(self) -> int:
        """Return what running requests own of that."""
        ...


def meet(one: Hashable, other: Hashable) -> bool:
    """Whether two places have a device in common, whose memory is then shared."""
    return one == other or not set(getattr(one, "devices", ())).isdisjoint(getattr(other, "devices", ()))


@dataclass(eq=False)
class LedgerEntry:
    """One model. Only the owner thread changes it."""

    name: str
    home: Hashable  # the placement: each has a budget of its own
    weights: int  # bytes on each of its devices
    floor: int  # bytes of the smallest conversation: a resident model can always run one
    workspace: int  # bytes that its programs need while they run
    returns: bool  # the engine can load it again, so it may be evicted
    keep_alive: float | None = None  # seconds that it stays when nobody uses it; None: until the memory is needed
    devices: int = 1  # that it is divided among
    chosen: str = ""  # why among so many; nothing: nobody said how many
    encoders: int = 0  # bytes of those encoders of pictures and sounds that are in memory, or are being read
    pinned: bool = False
    leaving: bool = False  # it goes as soon as nobody uses it
    state: State = State.ABSENT
    holds: int = 0  # explicit leases
    running: int = 0  # requests, those of dispatches in flight included
    last_used: float = 0.0
    guarded_until: float = 0.0  # just loaded, for somebody who is about to use it
    load_s: float = 0.0  # what loading it took the last time
    conversations: TakesKv | None = field(default=None, repr=False)  # None: the model is not in memory
    seen_kv: int = 0  # what its conversations took when the owner thread last looked: for other threads
    seen_host_kv: int = 0  # and those in host memory
    seen_read_s: float = 0.0  # what reading a token took; 0: it was never measured

    @property
    def leases(self) -> int:
        """How many are using it: it is not evicted before there is none."""
        return self.holds + self.running

    def kv(self) -> KvUse:
        """Return what the model's conversations take now."""
        there = self.conversations
        return KvUse() if there is None else KvUse(there.nbytes(), there.busy())

    @property
    def need(self) -> int:
        """The bytes that have to be free before the model is loaded."""
        return self.weights + self.workspace + self.floor

    @property
    def kv_bytes(self) -> int:
        """What its conversations take, or are sure to get."""
        return 0 if self.state is State.ABSENT else max(self.kv().total, self.floor)

    @property
    def nbytes(self) -> int:
        """The bytes that the model takes now."""
        if self.state is State.ABSENT:
            return 0
        return self.weights + self.encoders + self.workspace + self.kv_bytes

    @property
    def idle_kv(self) -> int:
        """What giving up its idle conversations would free."""
        use = self.kv()
        return max(0, max(use.total, self.floor) - max(use.busy, self.floor)) if self.state is State.RESIDENT else 0

    @property
    def idle(self) -> bool:
        """Whether the model may go, if it has to."""
        return self.state is State.RESIDENT and self.returns and not self.pinned and not self.leases

    def evictable(self, now: float) -> bool:
        """Whether the model may go to make room: not in the moment between its loading and its first use."""
        return self.idle and now >= self.guarded_until

    def reset(self) -> None:
        """Note that the model is not in memory any more."""
        self.state, self.leaving, self.conversations, self.seen_kv = State.ABSENT, False, None, 0
        self.encoders = 0
