"""Where conversations live: gives a request its KV, with what is there already, and gives up what is idle.

Only the owner thread comes here. Byte counts follow from shapes; nothing is asked of the device.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

import jax

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations import kv_eviction
from langchain_gemma_jax.engine.conversations.host_store import Shelf, bytes_of
from langchain_gemma_jax.engine.conversations.kv_eviction import Drop, DropSnapshot, Policy
from langchain_gemma_jax.engine.conversations.prefix_index import PrefixIndex, Reuse, Rings
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.device.sequence_kv import RingArrays, SequenceKV
from langchain_gemma_jax.engine.device.transfers import Device
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.host.own_log import OwnLog
from langchain_gemma_jax.engine.requests.prompt import token_keys
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot

_log = OwnLog(__name__)

WORTH_A_COPY = 16  # tokens in common: fewer are read again sooner than copied
HEADROOM = 64  # tokens that a new conversation can grow by before its cache does


class Budget(Protocol):
    """What a model's conversations may take of a device that other things are on, too."""

    def room(self) -> int:
        """Bytes, all of them together."""
        ...

    def more(self, missing: int) -> None:
        """Evict models that nobody uses, if so many bytes come free by that."""
        ...

    def others(self) -> list[Memory]:
        """Return the conversations of the other models on the device, which share the budget."""
        ...

    def gave_up(self, what: str, reason: str, nbytes: int, seconds: float) -> None:
        """Conversations went: for the log."""
        ...


@dataclass
class Memory:
    """The conversations of one model."""

    shape: Shape
    library: Library
    device: Device
    ladders: Ladders
    policy: Policy
    metrics: Metrics
    shared: Budget
    shelf: Shelf
    index: PrefixIndex = field(init=False)
    changed: bool = False  # since somebody looked at the byte counts
    _padding: dict[int, list[SequenceKV]] = field(default_factory=lambda: defaultdict(list))  # rows that fill up a step

    def __post_init__(self) -> None:
        self.index = PrefixIndex(Rings(sequence_kv.ring_size(self.shape.layout, self.ladders.capacities[-1])))

    # What a request asks for.

    def take(self, request: Request) -> bool:
        """Give a request its KV, with as much of its context in it as is there already. False: there is no room now."""
        self._bring_back(request)
        reuse = self.index.plan(request.keys(), request.scope)
        wanted = self.ladders.capacity(min(len(request.context) + min(request.room, HEADROOM), request.max_context))
        resident = self._take_over(reuse, wanted, request.scope) or self._start(reuse, wanted, request.scope)
        if resident is None:
            return False
        if reuse.lost:
            _log.info("request %d: %s", request.number, reuse.lost)
        resident.leased = True
        resident.system = max(resident.system, min(request.system, len(request.context)))
        request.resident = resident
        if request.started_at is None:  # later it has tokens of its own here
            request.reused = len(resident.keys)
        if resident.written > (self.index.rings.size or 0):
            self.keep(resident)  # the turn before ended here
        return True

    def grow(self, resident: Resident, tokens: int) -> bool:
        """Have room for so many tokens. False: there is none."""
        capacity = self.ladders.capacity(tokens)
        if capacity <= resident.capacity:
            return True
        if not self._make_room(self._bytes(capacity), resident.scope):
            return False
        self._resize(resident, capacity)
        return True

    def fits_alone(self, tokens: int) -> bool:
        """Whether a conversation of so many tokens fits if nothing else is kept, its own smaller arrays neither."""
        size = self._bytes(self.ladders.capacity(tokens))
        return self._used_elsewhere() + size <= self.policy.budget and size <= self.shared.room()

    def keep(self, resident: Resident) -> None:
        """Keep the rings as they are now, so that this point can be continued later too."""
        rings = self.index.rings
        end = len(resident.keys)
        if rings.size is None or not end or any(kept.end == end for kept in resident.snapshots):
            return
        size = sequence_kv.snapshot_bytes(self.shape.layout, resident.capacity, self.shape.recipe.kv_dtype)
        surplus = len(resident.snapshots) + 1 - self.policy.max_snapshots
        if self.policy.max_snapshots == 0 or not self._make_room(size, resident.scope):
            return
        # The first one serves the system prompt; of the others the oldest goes.
        for old in resident.snapshots[1 : 1 + max(0, surplus)]:
            self.index.drop_snapshot(resident, old)
        arrays = self.run(("snapshot", resident.capacity), resident.handle)
        self.index.add_snapshot(resident, Snapshot(end, resident.written, size, arrays))

    def must_keep_before(self, resident: Resident, tokens: int) -> bool:
        """Whether writing so many more would make the rings forget, for the first time, what they began with."""
        rings = self.index.rings
        if rings.size is None or resident.written > rings.size:
            return False
        return len(resident.keys) + tokens > rings.size and not any(
            kept.end == len(resident.keys) for kept in resident.snapshots
        )

    def release(self, request: Request) -> None:
        """The request is over, or has to start again. What it read stays, until the bytes are needed."""
        if request.resident is not None:
            request.resident.leased = False
            request.resident = None

    def pad(self, capacity: int, rows: int) -> bool:
        """Have sequences of nobody's, for the rows of a step that nobody needs. False: there is no room for them."""
        spare = self._padding.pop(capacity, [])  # these are not given up to make room for the others
        fits = len(spare) >= rows or self._make_room(rows * self._bytes(capacity), None)
        while fits and len(spare) < rows:
            spare.append(self.run(("empty", capacity)))
        self._padding[capacity] = spare
        return fits

    def padding(self, capacity: int, rows: int) -> list[SequenceKV]:
        """Return padding for so many rows, of what ``pad`` made. It is given away; see ``put_padding``."""
        spare = self._padding[capacity]
        taken, self._padding[capacity] = spare[:rows], spare[rows:]
        return taken

    def put_padding(self, capacity: int, sequences: tuple[SequenceKV, ...]) -> None:
        """Take back the sequences that ``padding`` gave away."""
        self._padding[capacity].extend(sequences)

    # What is used, and what can be given up.

    def nbytes(self) -> int:
        return self.index.nbytes() + self._padding_bytes()

    def nbytes_by_scope(self) -> dict[str, int]:
        return self.index.nbytes_by_scope()

    def busy(self) -> int:
        """What running requests own."""
        return sum(bytes_of(resident) for resident in self.index.residents if resident.leased)

    def evict_idle(self) -> None:
        """Give up everything that no running request owns."""
        for resident in self.index.residents:
            if not resident.leased:
                self.drop(resident)
        self._padding.clear()
        self.changed = True

    def park_all(self) -> None:
        """The model goes: its conversations move to host memory, as far as that pays, the last one used on top."""
        for resident in sorted(self.index.residents, key=lambda r: r.last_used):
            self.shelf.keep(resident, self.index.rings)

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

    def ring_size(self, capacity: int) -> int | None:
        """Slots of a local layer's ring in a cache of this capacity."""
        return sequence_kv.ring_size(self.shape.layout, capacity)

    def run(self, key: ProgramKey, *args: object) -> SequenceKV:
        """One of the programs for a conversation as a whole."""
        self.changed = True  # nothing is made or resized without coming here ...
        found: SequenceKV = self.device.run(key, self.library.of(key), *args)
        return found

    def _make_room(self, needed: int, scope: str | None) -> bool:
        """Give up idle conversations, this model's first, then idle models, until so many bytes fit."""
        for memory in (self, *self.shared.others()):
            if (missing := self._missing(needed)) > 0:
                memory.give_up(missing, scope if memory is self else None, needed)
        if (missing := self.nbytes() + needed - self.shared.room()) > 0:
            self.shared.more(missing)
        return self._missing(needed) <= 0

    def _missing(self, needed: int) -> int:
        """Bytes that are missing: of what conversations may take, or of what there is."""
        held = self.nbytes() + needed
        return max(held + self._used_elsewhere() - self.policy.budget, held - self.shared.room())

    def give_up(self, missing: int, scope: str | None = None, needed: int = 0) -> int:
        """Give up idle conversations of so many bytes, or as many as there are. Gives how many bytes that were.

        Args:
            missing: the bytes.
            scope: whom they are for: ...
            needed: ... it is judged by what it would use with this many more.
        """
        before, began, parked = self.nbytes(), time.perf_counter(), 0
        for action in kv_eviction.to_free(
            self.index,
            missing,
            policy=self._policy_now(),
            capacity_bytes=lambda tokens: self._bytes(self.ladders.capacity(tokens)),
            asking=scope,
            asked=needed,
        ):
            if not isinstance(action, DropSnapshot):
                parked += self.shelf.keep(action.resident, self.index.rings)
            if isinstance(action, Drop):
                self.drop(action.resident)
            elif isinstance(action, DropSnapshot):
                self.index.drop_snapshot(action.resident, action.snapshot)
                self.changed = True
            else:
                self._shrink(action)
        if self.nbytes() > before - missing and self._padding:
            self._padding.clear()
            self.changed = True
        freed = before - self.nbytes()
        if freed:
            what = "conversations to host memory" if parked else "conversations"
            self.shared.gave_up(
                what,
                "room for another conversation" if needed else "room for a model",
                freed,
                time.perf_counter() - began,
            )
        return freed

    def _policy_now(self) -> Policy:
        """The policy for what there is room for beside all else: shares of more than that would bind nobody."""
        return replace(self.policy, budget=min(self.policy.budget, self.shared.room()))

    def _bring_back(self, request: Request) -> None:
        """A conversation that was moved to the host, if that is faster than to read it again."""
        if not self.shelf.nbytes:
            return
        have = self.index.plan(request.keys(), request.scope).length
        found = self.shelf.find(request.keys(), request.scope, have, self.index.rings)
        # Making room may move others to the host, and this one out of it.
        if found is not None and self._make_room(bytes_of(found), request.scope) and self.shelf.holds(found):
            self.index.add(self.shelf.fetch(found))
            self.changed = True

    def _used_elsewhere(self) -> int:
        return sum(memory.nbytes() for memory in self.shared.others())

    def _padding_bytes(self) -> int:
        return sum(self._bytes(capacity) * len(rows) for capacity, rows in self._padding.items())

    def _shrink(self, action: kv_eviction.Shrink) -> None:
        resident = action.resident
        self._cut(resident, action.keep, action.snapshot)
        self._resize(resident, self.ladders.capacity(action.keep))
        self.metrics.evictions += 1

    def _take_over(self, reuse: Reuse, capacity: int, scope: str) -> Resident | None:
        """A conversation that begins as the plan says. None: nothing is worth it, or there is no room."""
        source = reuse.source
        if source is None or (not reuse.in_place and reuse.length < WORTH_A_COPY):
            return None
        was, source.leased = source.leased, True  # whatever is given up now, not this
        try:
            if not reuse.in_place and self._make_room(self._bytes(capacity), scope):
                return self._fork(source, reuse, capacity)
            # Rather lose the other branch than read all of it again.
            return source if not was and self._continue(source, reuse, capacity, scope) else None
        finally:
            source.leased = was

    def _start(self, reuse: Reuse, capacity: int, scope: str) -> Resident | None:
        """An empty conversation. None: there is no room."""
        if reuse.length >= WORTH_A_COPY and any(resident.leased for resident in self.index.residents):
            return None  # what others give back may be enough to take it over
        if not self._make_room(self._bytes(capacity), scope):
            return None
        handle = self.run(("empty", capacity))
        return self._add(scope, capacity, handle, token_keys(()))

    def _add(self, scope: str, capacity: int, handle: SequenceKV, keys: array[int]) -> Resident:
        resident = Resident(scope, capacity, self._bytes(capacity), handle, keys)
        self.index.add(resident)
        return resident

    def _continue(self, resident: Resident, reuse: Reuse, capacity: int, scope: str) -> bool:
        """Go on in a conversation's own arrays, behind its first ``reuse.length`` tokens. False: they cannot grow."""
        if capacity > resident.capacity and not self._make_room(self._bytes(capacity), scope):
            return False
        self._cut(resident, reuse.length, reuse.snapshot)
        self.index.touch(resident)
        if capacity > resident.capacity:
            self._resize(resident, capacity)
        return True

    def _fork(self, source: Resident, reuse: Reuse, capacity: int) -> Resident:
        """A copy of a conversation's first tokens. The conversation stays as it is."""
        handle = self._with_rings(self._copy(source, capacity), capacity, reuse.snapshot)
        resident = self._add(source.scope, capacity, handle, source.keys[: reuse.length])
        self.index.touch(source)
        resident.written = (source if reuse.snapshot is None else reuse.snapshot).written
        resident.system = min(source.system, reuse.length)
        resident.snapshots = self.index.rings.carried(source.snapshots, reuse.length)
        return resident

    def _cut(self, resident: Resident, length: int, snapshot: Snapshot | None) -> None:
        """Forget what is behind its first tokens."""
        try:
            resident.handle = self._with_rings(cast("SequenceKV", resident.handle), resident.capacity, snapshot)
        except BaseException:
            self.drop(resident)  # its arrays were given away
            raise
        self.index.truncate(resident, length, snapshot)
        self.changed = True  # snapshots may be gone

    def _resize(self, resident: Resident, capacity: int) -> None:
        old = resident.handle
        resident.handle = self._copy(resident, capacity)
        free(old)
        resident.capacity, resident.nbytes = capacity, self._bytes(capacity)

    def _copy(self, resident: Resident, capacity: int) -> SequenceKV:
        return self.run(("resize", resident.capacity, capacity), resident.handle)

    def _with_rings(self, handle: SequenceKV, capacity: int, snapshot: Snapshot | None) -> SequenceKV:
        """A sequence that is given away, with the rings of a snapshot; as it is without one."""
        if snapshot is None:
            return handle
        arrays = cast("RingArrays", snapshot.handle)
        return self.run(("restore", arrays[0].keys.shape[2], capacity), handle, arrays)

    def _bytes(self, capacity: int) -> int:
        shape = self.shape
        return sequence_kv.sequence_bytes(shape.layout, capacity, shape.max_context, shape.recipe.kv_dtype)


def free(tree: object) -> None:
    """Delete arrays now, whoever else still refers to them."""
    for leaf in jax.tree.leaves(tree):
        if not leaf.is_deleted():
            leaf.delete()
