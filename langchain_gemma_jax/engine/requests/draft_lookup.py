"""Guesses what comes next from what came before: text that repeats itself is drafted without a second model.

Agents repeat a lot: arguments copied from a tool's result, code with one line changed, keys of JSON.
A draft that is wrong changes nothing but the time that its verification took.
"""

from __future__ import annotations

from collections.abc import Iterable

from langchain_gemma_jax.errors import InputError


class DraftLookup:
    """Drafts for one request: what followed the last time that the context ended as it does now.

        >>> lookup = DraftLookup(limit=4)
        >>> lookup.extend([6, 7, 8, 9, 1, 2, 5, 6, 7, 8])
        >>> lookup.propose()
        (9, 1, 2, 5)
        >>> lookup.record(proposed=4, accepted=1)

    The last 12 tokens decide if they occurred before, else the last 6, else the last 3 (``ngrams``); of the
    earlier occurrences the most recent. Long ones see where in a list of similar things the text is. A proposal
    that reaches the end of the context goes on with itself, so a period continues: behind ``a b c d a b c`` comes
    ``d a b c d a b``.

    It switches itself off where it does not pay. The share of the drafted tokens that were right is followed by a
    moving average over the last ``MEMORY`` of them, more or less, that starts at ``START``: so three drafts
    of 7 that are all wrong are needed at the beginning. Below ``FLOOR`` it pauses for ``PAUSE`` tokens; then one
    draft may show that the text has changed. If it is no better the next pause is twice as long.

    Tokens are indexed when a draft is asked for, so prompts cost nothing where none is. Memory is bounded: of the
    context the last ``span`` tokens are known, or at least their later half.
    """

    FLOOR = 0.3
    START = 0.5
    MEMORY = 32
    PAUSE = 64

    def __init__(self, limit: int = 7, ngrams: tuple[int, ...] = (3, 6, 12), span: int = 131_072) -> None:
        if limit < 1 or min(ngrams, default=0) < 1 or span < 2 * max(ngrams):
            raise InputError(
                "expected limit >= 1, one or more ngrams, each at least 1, and a span of at least twice the longest; "
                f"found limit={limit}, ngrams={ngrams}, span={span}."
            )
        self.drafted = 0
        self.accepted = 0
        self._limit, self._span = limit, span
        # By length: where the token behind an n-gram's last occurrence stands. An n-gram is known by its hash: if two
        # ever share one, that is a wrong guess like any other.
        self._behind: dict[int, dict[int, int]] = {length: {} for length in sorted(set(ngrams), reverse=True)}
        self._ids: list[int] = []
        self._indexed = 0  # ids before this position stand behind an n-gram that is in the index
        self._forgotten = 0
        self._rate = self.START
        self._pause = self.PAUSE
        self._resume = 0  # the length of the context from which on it is active

    @property
    def active(self) -> bool:
        """Whether drafts seem to pay."""
        return self._forgotten + len(self._ids) >= self._resume

    def extend(self, ids: Iterable[int]) -> None:
        """Tokens that the context got: first those of the prompt, then what was generated."""
        self._ids.extend(ids)
        if len(self._ids) > self._span:
            surplus = len(self._ids) - self._span // 2
            del self._ids[:surplus]
            self._forgotten += surplus
            self._indexed = 0
            for index in self._behind.values():
                index.clear()

    def propose(self) -> tuple[int, ...]:
        """The tokens that probably come next: ``limit`` of them, or none."""
        if not self.active:
            return ()
        self._index()
        ids = self._ids
        for length, index in self._behind.items():
            if len(ids) > length and (behind := index.get(hash(tuple(ids[-length:])))) is not None:
                known = ids[behind : behind + self._limit]
                return tuple(known[place % len(known)] for place in range(self._limit))
        return ()

    def record(self, proposed: int, accepted: int) -> None:
        """What became of a draft: how many tokens were verified, and how many of them were right."""
        if not 0 <= accepted <= proposed:
            raise InputError(f"expected 0 <= accepted <= proposed, found accepted={accepted}, proposed={proposed}.")
        if proposed == 0:
            return
        self.drafted += proposed
        self.accepted += accepted
        kept = (1 - 1 / self.MEMORY) ** proposed
        self._rate = kept * self._rate + (1 - kept) * accepted / proposed
        if self._rate < self.FLOOR:
            self._resume = self._forgotten + len(self._ids) + self._pause
            self._pause *= 2
            self._rate = self.FLOOR  # one more bad draft pauses again
        elif self._rate >= self.START:
            self._pause = self.PAUSE

    def _index(self) -> None:
        """Bring the index up to date. The n-grams at the very end have nothing behind them, and stay out."""
        ids, done, end = self._ids, self._indexed, len(self._ids)
        for length, index in self._behind.items():
            first = max(done, length)  # the first new token that stands behind a whole n-gram
            if first < end:
                grams = zip(
                    *(ids[first - length + place : end - length + place] for place in range(length)), strict=True
                )
                index.update(zip(map(hash, grams), range(first, end), strict=True))
        self._indexed = end
