"""``PrefixIndex``: the tokens whose keys and values are resident, and the part of them that a new prompt can reuse.

A *resident* is one conversation, with the keys of what it has read: a token's key is its id, and the key of a place in
an image follows from its digest (``requests/prompt.py``). A prompt reuses the longest prefix that it shares with a
resident of its own scope: in place if that loses nothing, otherwise it shares the pages. Global layers have the pages
of all tokens. Local layers have those of the window before the end, and before the ends of some earlier turns: only
from there a conversation can be continued.

No code here touches an array. One thread owns an index, so there are no locks.
"""

# Matching compares the prompt's bytes with each resident's, in C and without copying them. Measured on two shared
# cores: 0.5 ms for a prompt of 32,768 tokens and 64 residents that share 20,000-32,000 of them, and 0.07 ms for a
# radix trie (of arrays, compared the same way). Both are negligible next to the prefill that they save, and the list
# cannot disagree with its residents. Making an array of a list of 32,768 ids takes longer than either: 0.9 ms.

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from langchain_gemma_jax.engine.base.pages import SLACK, PageSizes, PageTotals, Paging
from langchain_gemma_jax.engine.requests.prompt import token_keys, whole_media
from langchain_gemma_jax.engine.requests.resident import Resident


@dataclass(frozen=True)
class Reuse:
    """The part of a prompt that can be reused."""

    source: Resident | None = None
    length: int = 0  # tokens of reused KV; 0: cold
    common: int = 0  # tokens of the prompt, without its last, that a resident of the scope has
    in_place: bool = False  # continue the source itself, cut to `length`; otherwise share the pages of those tokens
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

    def __init__(self, paging: Paging, sizes: PageSizes) -> None:
        self.paging, self._sizes = paging, sizes
        self._scopes: dict[str, dict[Resident, None]] = {}
        self._clock = 0  # goes on with each use and each change

    @property
    def residents(self) -> list[Resident]:
        return [resident for members in self._scopes.values() for resident in members]

    def copied(self) -> list[Resident]:
        """Return the residents, for any thread. Each copy of a dictionary is made at once."""
        return [resident for members in list(self._scopes.values()) for resident in list(members)]

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

    def extend(self, resident: Resident, keys: Iterable[int]) -> None:
        """Add tokens whose keys and values are valid now."""
        new = token_keys(keys)
        total = len(resident.keys) + len(new)
        if self.paging.count(total) > len(resident.whole):
            raise ValueError(
                f"{total} tokens do not fit a resident with {len(resident.whole)} pages: give it more first"
            )
        self.touch(resident)
        resident.keys.extend(new)

    def truncate(self, resident: Resident, length: int) -> None:
        """Keep only the first ``length`` tokens. This is not a use: ``last_used`` does not change."""
        self._known(resident)
        if length > len(resident.keys) or self.paging.reach(resident.local, length) != length:
            raise ValueError(
                f"a resident of {len(resident.keys)} tokens cannot be cut to {length}: the pages of its local layers "
                f"are {sorted(resident.local)} ({self.paging}). Cut to what plan() gives."
            )
        self._clock += 1
        del resident.keys[length:]
        resident.system = min(resident.system, length)
        resident.turns = sorted({min(turn, length) for turn in resident.turns} - {0})  # a later one ends here now

    def keep_turn(self, resident: Resident) -> None:
        """Note that a turn ends here: the window before this length is kept."""
        self._known(resident)
        length = len(resident.keys)
        if length and length not in resident.turns:
            insort(resident.turns, length)
            self._clock += 1

    def forget_turn(self, resident: Resident, length: int) -> None:
        """Note that the window before a length is not kept any more."""
        self._known(resident)
        resident.turns.remove(length)
        self._clock += 1

    def wanted(self, resident: Resident) -> set[int]:
        """Return the numbers of the local layers' pages that are worth keeping: of its end, and of its turns."""
        return set().union(*map(self.paging.local_of_turn, (*resident.turns, len(resident.keys))))

    def renewed(self, reuse: Reuse, keys: Sequence[int], scope: str) -> Reuse:
        """Return a plan as it is, if nothing was added, removed, changed or used since; else a new one."""
        return reuse if reuse.planned_at == self._clock else self.plan(keys, scope)

    def plan(self, keys: Sequence[int], scope: str) -> Reuse:
        """Return the longest prefix of a prompt that can be reused. This changes nothing.

        At least one token is left to be read, for its scores. Among equally long ones, those that can be continued in
        place come first, then the last used.
        """
        most = len(keys) - 1
        members = self._scopes.get(scope, {})
        if most < 1 or not members:
            return Reuse(planned_at=self._clock)
        prompt = token_keys(keys).tobytes()
        best, best_rank = Reuse(), (0, False, 0)
        common, nearest = 0, None
        for resident in members:
            same = whole_media(keys, common_prefix(prompt, resident.keys, min(most, len(resident.keys))))
            if same > common:
                common, nearest = same, resident
            length = self.paging.reach(resident.local, same)
            # A tail no longer than the slack comes from a retried or cancelled turn, and is cheap to read again.
            in_place = not resident.leased and len(resident.keys) - length <= SLACK
            rank = (length, in_place, resident.last_used)
            if length and rank > best_rank:
                best, best_rank = Reuse(resident, length, in_place=in_place), rank
        lost = "" if nearest is None or best.length == common else self._lost(common, best.length)
        return replace(best, common=common, lost=lost, planned_at=self._clock)

    def nbytes(self) -> int:
        """Return the bytes of all pages. One that several conversations share counts once."""
        return sum(self.nbytes_by_scope().values())

    def nbytes_by_scope(self) -> dict[str, int]:
        """Return the bytes of the pages of each scope. Scopes share none."""
        return {scope: self.bytes_of(members) for scope, members in self._scopes.items()}

    def bytes_of(self, residents: Iterable[Resident]) -> int:
        """Return the bytes of the pages of some residents."""
        whole, local = set[Hashable](), set[Hashable]()
        for resident in residents:
            whole.update(resident.whole)
            local.update(resident.local.values())
        return self._sizes.of(PageTotals(len(whole), len(local)))

    def _known(self, resident: Resident) -> None:
        if resident not in self:
            raise ValueError("this resident is not in the index: add it first, and never after it was removed")

    def _lost(self, common: int, length: int) -> str:
        kept = f"the nearest state kept is at {length:,}" if length else "no earlier state is kept"
        return (
            f"{common:,} tokens match, but the local layers' window of {self.paging.window:,} tokens before them is not"
            f" kept any more; {kept}, so {common - length:,} tokens are read again"
        )
