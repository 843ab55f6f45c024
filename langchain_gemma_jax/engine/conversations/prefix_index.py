"""``PrefixIndex``: the tokens whose keys and values are resident, and the part of them that a new prompt can reuse.

A *resident* is one sequence on the device, with the keys of what it has read: a token's key is its id, and the key
of a place in an image follows from its digest (``requests/prompt.py``). A prompt reuses the longest prefix that it
shares with a resident of its own scope: in place if that loses nothing, otherwise as a copy. Global layers can be cut
anywhere. Local layers have rings, which overwrite old tokens: going back further than their slack needs a *snapshot* of
the rings, taken at an earlier length.

No code here touches an array. One thread owns an index, so there are no locks.
"""

# Matching compares the prompt's bytes with each resident's, in C and without copying them. Measured on two shared
# cores: 0.5 ms for a prompt of 32,768 tokens and 64 residents that share 20,000-32,000 of them, and 0.07 ms for a
# radix trie (of arrays, compared the same way). Both are negligible next to the prefill that they save, and the list
# cannot disagree with its residents. Making an array of a list of 32,768 ids takes longer than either: 0.9 ms.

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from langchain_gemma_jax.engine.requests.prompt import token_keys, whole_media
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot


@dataclass(frozen=True)
class Rings:
    """The lengths that the local layers' rings can be taken back to."""

    size: int | None  # slots at full size; None: no local layer, so it can be taken back to any length
    slack: int = 16  # slots beyond the window

    def restorable(self, end: int, written: int, length: int) -> bool:
        """Return True if rings with ``end`` tokens, written up to ``written``, can be continued from ``length``."""
        if not 0 <= length <= end:
            return False
        # Position p overwrote p - size. So the window before `length` is complete if nothing was ever overwritten,
        # or if no more than the slack was written after it.
        return self.size is None or written <= self.size or written - length <= self.slack

    def reach(self, end: int, written: int, snapshots: Iterable[Snapshot], length: int) -> tuple[int, Snapshot | None]:
        """Return the longest prefix, at most ``length``, to continue from, and the snapshot to restore for it.

        Without a snapshot, the rings are used as they are. ``(0, None)``: nothing can be continued.
        """
        length = min(length, end)
        if self.restorable(end, written, length):
            return length, None
        usable = [clipped for snapshot in snapshots if (clipped := self.clip(snapshot, length)) is not None]
        best = max(usable, key=lambda snapshot: snapshot.end, default=None)
        return (0, None) if best is None or best.end == 0 else (best.end, best)

    def clip(self, snapshot: Snapshot, length: int) -> Snapshot | None:
        """Return the snapshot cut to its first ``length`` tokens; None if it cannot be."""
        if snapshot.end <= length:
            return snapshot
        usable = self.restorable(snapshot.end, snapshot.written, length)
        return replace(snapshot, end=length) if usable else None

    def carried(self, snapshots: Iterable[Snapshot], length: int) -> list[Snapshot]:
        """Return the snapshots for the first ``length`` tokens: those that a copy shares and a cut keeps."""
        kept: list[Snapshot] = []
        for snapshot in snapshots:
            clipped = self.clip(snapshot, length)
            if clipped is not None and (not kept or kept[-1].end < clipped.end):
                kept.append(clipped)
        return kept


@dataclass(frozen=True)
class Reuse:
    """The part of a prompt that can be reused."""

    source: Resident | None = None
    length: int = 0  # tokens of reused KV; 0: cold
    common: int = 0  # tokens of the prompt, without its last, that a resident of the scope has
    in_place: bool = False  # continue the source itself, cut to `length`; otherwise a copy of its first `length` tokens
    snapshot: Snapshot | None = None  # the rings to continue with; its `end` is `length`; None: the source's own
    lost: str = ""  # the reason why `length` is less than `common`
    planned_at: int = field(default=0, compare=False, repr=False)  # by the index's clock: see `renewed`


def common_prefix(prompt: bytes, keys: array[int], limit: int) -> int:
    """Return the number of leading tokens that are equal, up to ``limit``. Neither may be shorter than ``limit``."""
    width = keys.itemsize
    with memoryview(keys) as held:
        if prompt.startswith(held[:limit]):
            return limit
        same, differ = 0, limit  # keys[:same] are equal; the first difference is in keys[same:differ]
        while differ - same > 1:
            middle = (same + differ) // 2
            if prompt.startswith(held[same:middle], width * same):
                same = middle
            else:
                differ = middle
        return same


class PrefixIndex:
    """The residents, by scope. Different scopes never match."""

    def __init__(self, rings: Rings) -> None:
        self.rings = rings
        self._scopes: dict[str, dict[Resident, None]] = {}
        self._clock = 0  # goes on with each use and each change

    @property
    def residents(self) -> list[Resident]:
        return [resident for members in self._scopes.values() for resident in members]

    def __contains__(self, resident: Resident) -> bool:
        return resident in self._scopes.get(resident.scope, ())

    def add(self, resident: Resident) -> None:
        if resident in self:
            raise ValueError("this resident is in the index already: add it once")
        self._scopes.setdefault(resident.scope, {})[resident] = None
        self.touch(resident)

    def remove(self, resident: Resident) -> None:
        self._known(resident)
        members = self._scopes[resident.scope]
        del members[resident]
        if not members:
            del self._scopes[resident.scope]
        self._clock += 1

    def touch(self, resident: Resident) -> None:
        """Mark a resident as just used, if only as the source of a copy."""
        self._known(resident)
        self._clock += 1
        resident.last_used = self._clock

    def extend(self, resident: Resident, keys: Iterable[int], written: int = 0) -> None:
        """Add tokens whose KV is valid now. ``written``: the end of the step's writes, if later (padding, drafts)."""
        new = token_keys(keys)
        total = len(resident.keys) + len(new)
        if total > resident.capacity:
            raise ValueError(f"{total} tokens do not fit a resident of capacity {resident.capacity}: grow it first")
        self.touch(resident)
        resident.keys.extend(new)
        resident.written = max(resident.written, total, written)

    def truncate(self, resident: Resident, length: int, snapshot: Snapshot | None = None) -> None:
        """Keep only the first ``length`` tokens, with the rings of ``snapshot`` or with its own.

        This is not a use: ``last_used`` does not change.
        """
        self._known(resident)
        end, written = (len(resident.keys), resident.written) if snapshot is None else (snapshot.end, snapshot.written)
        if length > len(resident.keys) or not self.rings.restorable(end, written, length):
            raise ValueError(
                f"a resident of {len(resident.keys)} tokens cannot be cut to {length}: its rings hold {end} tokens and"
                f" were written up to {written} ({self.rings}). Cut to what plan() or Rings.reach() gives."
            )
        self._clock += 1
        del resident.keys[length:]
        resident.written = written
        resident.system = min(resident.system, length)
        resident.snapshots = self.rings.carried(resident.snapshots, length)

    def add_snapshot(self, resident: Resident, snapshot: Snapshot) -> None:
        """Add a snapshot of a length to go back to. It replaces one of the same length."""
        self._known(resident)
        end = snapshot.end
        if end > len(resident.keys) or not self.rings.restorable(end, snapshot.written, end):
            raise ValueError(
                f"a snapshot at {end} tokens, written up to {snapshot.written}, is of no use to a resident of"
                f" {len(resident.keys)} tokens ({self.rings}): take it from the rings of a length that is resident"
            )
        at = bisect_left(resident.snapshots, end, key=lambda kept: kept.end)
        same = at < len(resident.snapshots) and resident.snapshots[at].end == end
        resident.snapshots[at : at + same] = [snapshot]
        self._clock += 1

    def drop_snapshot(self, resident: Resident, snapshot: Snapshot) -> None:
        self._known(resident)
        resident.snapshots.remove(snapshot)
        self._clock += 1

    def renewed(self, reuse: Reuse, keys: Sequence[int], scope: str) -> Reuse:
        """Return a plan as it is, if nothing was added, removed, changed or used since; else a new one."""
        return reuse if reuse.planned_at == self._clock else self.plan(keys, scope)

    def plan(self, keys: Sequence[int], scope: str) -> Reuse:
        """Return the longest prefix of a prompt that can be reused. This changes nothing.

        At least one token is left to be read, for its scores. Among equally long ones, the order is: those that can be
        continued in place, those that need no snapshot, the last used.
        """
        most = len(keys) - 1
        members = self._scopes.get(scope, {})
        if most < 1 or not members:
            return Reuse(planned_at=self._clock)
        prompt = token_keys(keys).tobytes()
        best, best_rank = Reuse(), (0, False, False, 0)
        common, nearest = 0, None
        for resident in members:
            same = whole_media(keys, common_prefix(prompt, resident.keys, min(most, len(resident.keys))))
            if same > common:
                common, nearest = same, resident
            end = len(resident.keys)
            length, snapshot = self.rings.reach(end, resident.written, resident.snapshots, same)
            # A tail no longer than the slack comes from a retried or cancelled turn, and is cheap to read again.
            in_place = not resident.leased and end - length <= self.rings.slack
            rank = (length, in_place, snapshot is None, resident.last_used)
            if length and rank > best_rank:
                best, best_rank = Reuse(resident, length, in_place=in_place, snapshot=snapshot), rank
        lost = "" if nearest is None or best.length == common else self._lost(nearest, common, best.length)
        return replace(best, common=common, lost=lost, planned_at=self._clock)

    def nbytes(self) -> int:
        return sum(self.nbytes_by_scope().values())

    def nbytes_by_scope(self) -> dict[str, int]:
        """Return the bytes of residents and snapshots. A snapshot that several of a scope share counts once."""
        return {
            scope: sum(resident.nbytes for resident in members)
            + sum({id(kept.handle): kept.nbytes for resident in members for kept in resident.snapshots}.values())
            for scope, members in self._scopes.items()
        }

    def _known(self, resident: Resident) -> None:
        if resident not in self:
            raise ValueError("this resident is not in the index: add it first, and never after it was removed")

    def _lost(self, nearest: Resident, common: int, length: int) -> str:
        kept = f"the nearest state kept is at {length:,}" if length else "no earlier state is kept"
        return (
            f"{common:,} tokens match, but the local layers' rings ({self.rings.size:,} slots) were written up to"
            f" {nearest.written:,} and go back {self.rings.slack} tokens at most; {kept}, so"
            f" {common - length:,} tokens are read again"
        )
