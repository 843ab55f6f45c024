"""Which tokens' keys and values are resident, and what of them a new prompt can take over.

A *resident* is one sequence on the device, with the keys of what it has read: a token's key is its id, and the key
of a place in an image follows from its digest (``requests/prompt.py``). A prompt takes over the longest prefix
that it shares with a resident of its own scope: in place where that loses nothing, as a copy otherwise. Global
layers can be cut anywhere. Local layers keep rings, which forget: going back further than their slack needs a
*snapshot* of the rings, taken at an earlier length.

Nothing here touches an array. One thread owns an index; nothing is locked.
"""

# Matching compares the prompt's bytes with each resident's, in C and without copying them. Measured on two shared
# cores: 0.5 ms for a prompt of 32,768 tokens and 64 residents that share 20,000-32,000 of them, and 0.07 ms for a
# radix trie (of arrays, compared the same way). Both vanish beside the prefill that they save, and the list cannot
# disagree with its residents. Making an array of a list of 32,768 ids takes longer than either: 0.9 ms.

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from langchain_gemma_jax.engine.requests.prompt import token_keys, whole_media
from langchain_gemma_jax.engine.requests.resident import Resident, Snapshot


@dataclass(frozen=True)
class Rings:
    """What the local layers' rings can give back."""

    size: int | None  # slots at full size; None: no local layer, so every length can be gone back to
    slack: int = 16  # slots beyond the window

    def restorable(self, end: int, written: int, length: int) -> bool:
        """Whether rings with ``end`` valid tokens, written up to ``written``, can be continued from ``length``."""
        if not 0 <= length <= end:
            return False
        # Position p overwrote p - size. So the window before `length` is whole if nothing was ever overwritten,
        # or if no more than the slack was written after it.
        return self.size is None or written <= self.size or written - length <= self.slack

    def reach(self, end: int, written: int, snapshots: Iterable[Snapshot], length: int) -> tuple[int, Snapshot | None]:
        """The longest prefix, of ``length`` at most, to continue from, and the snapshot to restore for it.

        No snapshot: the rings as they are will do. ``(0, None)``: nothing can be continued.
        """
        length = min(length, end)
        if self.restorable(end, written, length):
            return length, None
        usable = [clipped for snapshot in snapshots if (clipped := self.clip(snapshot, length)) is not None]
        best = max(usable, key=lambda snapshot: snapshot.end, default=None)
        return (0, None) if best is None or best.end == 0 else (best.end, best)

    def clip(self, snapshot: Snapshot, length: int) -> Snapshot | None:
        """The snapshot where only the first ``length`` tokens are still the same; None where that makes it useless."""
        if snapshot.end <= length:
            return snapshot
        usable = self.restorable(snapshot.end, snapshot.written, length)
        return replace(snapshot, end=length) if usable else None

    def carried(self, snapshots: Iterable[Snapshot], length: int) -> list[Snapshot]:
        """The snapshots that serve the first ``length`` tokens: what a copy shares, and what a cut leaves."""
        kept: list[Snapshot] = []
        for snapshot in snapshots:
            clipped = self.clip(snapshot, length)
            if clipped is not None and (not kept or kept[-1].end < clipped.end):
                kept.append(clipped)
        return kept


@dataclass(frozen=True)
class Reuse:
    """What a prompt can take over."""

    source: Resident | None = None
    length: int = 0  # tokens of KV taken over; 0: cold
    common: int = 0  # tokens of the prompt, less its last, that some resident of the scope holds
    in_place: bool = False  # continue the source itself, cut to `length`; else a copy of its first `length` tokens
    snapshot: Snapshot | None = None  # the rings to continue with, its `end` is `length`; None: the source's own
    lost: str = ""  # why `length` is less than `common`


def common_prefix(prompt: bytes, keys: array[int], limit: int) -> int:
    """How many leading tokens are the same, up to ``limit``, which neither is shorter than."""
    width = keys.itemsize
    with memoryview(keys) as held:
        if prompt.startswith(held[:limit]):
            return limit
        same, differ = 0, limit  # keys[:same] are the same; the first other is in keys[same:differ]
        while differ - same > 1:
            middle = (same + differ) // 2
            if prompt.startswith(held[same:middle], width * same):
                same = middle
            else:
                differ = middle
        return same


class PrefixIndex:
    """The residents, by scope. Scopes never match each other."""

    def __init__(self, rings: Rings) -> None:
        self.rings = rings
        self._scopes: dict[str, dict[Resident, None]] = {}
        self._clock = 0

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

    def touch(self, resident: Resident) -> None:
        """Note that a resident was used just now, if only to be copied from."""
        self._known(resident)
        self._clock += 1
        resident.last_used = self._clock

    def extend(self, resident: Resident, keys: Iterable[int], written: int = 0) -> None:
        """More tokens' KV is valid. ``written``: how far the step wrote, if further (padding, rejected drafts)."""
        new = token_keys(keys)
        total = len(resident.keys) + len(new)
        if total > resident.capacity:
            raise ValueError(f"{total} tokens do not fit a resident of capacity {resident.capacity}: grow it first")
        self.touch(resident)
        resident.keys.extend(new)
        resident.written = max(resident.written, total, written)

    def truncate(self, resident: Resident, length: int, snapshot: Snapshot | None = None) -> None:
        """Only the first ``length`` tokens stay valid; with the rings of ``snapshot``, or with its own.

        Cutting is not using: ``last_used`` stays.
        """
        self._known(resident)
        end, written = (len(resident.keys), resident.written) if snapshot is None else (snapshot.end, snapshot.written)
        if length > len(resident.keys) or not self.rings.restorable(end, written, length):
            raise ValueError(
                f"a resident of {len(resident.keys)} tokens cannot be cut to {length}: its rings hold {end} tokens and"
                f" were written up to {written} ({self.rings}). Cut to what plan() or Rings.reach() gives."
            )
        del resident.keys[length:]
        resident.written = written
        resident.system = min(resident.system, length)
        resident.snapshots = self.rings.carried(resident.snapshots, length)

    def add_snapshot(self, resident: Resident, snapshot: Snapshot) -> None:
        """Keep the rings of a length that it can be asked to go back to. Replaces one of the same length."""
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

    def drop_snapshot(self, resident: Resident, snapshot: Snapshot) -> None:
        self._known(resident)
        resident.snapshots.remove(snapshot)

    def plan(self, keys: Sequence[int], scope: str) -> Reuse:
        """The longest prefix of a prompt that can be taken over. Changes nothing, so the answer holds until a change.

        One token at least is left to be read, for its scores. Of equally long ones, those come first that can be
        continued in place, then those that need no snapshot, then the one that was used last.
        """
        most = len(keys) - 1
        members = self._scopes.get(scope, {})
        if most < 1 or not members:
            return Reuse()
        prompt = token_keys(keys).tobytes()
        best, best_rank = Reuse(), (0, False, False, 0)
        common, nearest = 0, None
        for resident in members:
            same = whole_media(keys, common_prefix(prompt, resident.keys, min(most, len(resident.keys))))
            if same > common:
                common, nearest = same, resident
            end = len(resident.keys)
            length, snapshot = self.rings.reach(end, resident.written, resident.snapshots, same)
            # A tail no longer than the slack is that of a retried or cancelled turn: cheap to read again.
            in_place = not resident.leased and end - length <= self.rings.slack
            rank = (length, in_place, snapshot is None, resident.last_used)
            if length and rank > best_rank:
                best, best_rank = Reuse(resident, length, in_place=in_place, snapshot=snapshot), rank
        lost = "" if nearest is None or best.length == common else self._lost(nearest, common, best.length)
        return replace(best, common=common, lost=lost)

    def nbytes(self) -> int:
        return sum(self.nbytes_by_scope().values())

    def nbytes_by_scope(self) -> dict[str, int]:
        """Bytes of residents and snapshots; a snapshot that several of a scope share counts once."""
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
