"""Prompt lookup: drafts the next tokens from earlier text that repeats itself, without a second model.

Agents repeat a lot: arguments copied from a tool's result, code with one changed line, keys of JSON. A wrong draft
costs only the time of its verification.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_gemma_jax.errors import InputError


class DraftLookup:
    """Drafts for one request: the tokens that followed the last time that the context ended like this.

        >>> lookup = DraftLookup(limit=4)
        >>> lookup.propose([6, 7, 8, 9, 1, 2, 5, 6, 7, 8])
        (9, 1, 2, 5)
        >>> lookup.record(proposed=4, accepted=1)

    The last 12 tokens are looked up first, then the last 6, then the last 3 (``ngrams``); the most recent earlier
    occurrence counts. Long n-grams find the right place in a list of similar things. A proposal that reaches the end of
    the context continues with itself, so a period continues: ``a b c d a b c`` is followed by ``d a b c d a b``.

    It switches itself off when it is not worth it. A moving average over about the last ``MEMORY`` drafted tokens is
    the share of accepted ones. It starts at ``START``, so it takes three completely wrong drafts of 7 tokens at the
    beginning to fall below ``FLOOR``. Then drafting pauses for ``PAUSE`` tokens, after which one draft may show that
    the text has changed. If it is wrong too, the next pause is twice as long.

    The context is read where the request has it, and indexed when a draft is asked for: without drafts a prompt costs
    nothing. Memory is bounded: at least the later half of the last ``span`` tokens of the context is indexed.
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
        # By length: the index of the token after an n-gram's last occurrence, by the n-gram's hash. If two n-grams
        # share a hash, that is a wrong guess like any other.
        self._following: dict[int, dict[int, int]] = {length: {} for length in sorted(set(ngrams), reverse=True)}
        self._length = 0  # of the context, when it was last read
        self._first = 0  # what is before this position is forgotten
        self._indexed = 0  # ids before this position follow an n-gram that is in the index
        self._rate = self.START
        self._pause = self.PAUSE
        self._resume = 0  # the length of the context at which it becomes active again

    @property
    def active(self) -> bool:
        """True unless drafting is paused because it was not worth it."""
        return self._length >= self._resume

    def propose(self, context: Sequence[int]) -> tuple[int, ...]:
        """Return ``limit`` tokens that probably follow this context, or none. Between two calls it only grows."""
        self._length = len(context)
        if self._length - self._first > self._span:
            self._first = self._indexed = self._length - self._span // 2
            for index in self._following.values():
                index.clear()
        if not self.active:
            return ()
        self._index(context)
        for length, index in self._following.items():
            if self._length - self._first <= length:
                continue
            if (following := index.get(hash(tuple(context[-length:])))) is not None:
                known = context[following : following + self._limit]
                return tuple(known[place % len(known)] for place in range(self._limit))
        return ()

    def record(self, proposed: int, accepted: int) -> None:
        """Record a draft's result: the number of tokens that were verified, and of those that were right."""
        if not 0 <= accepted <= proposed:
            raise InputError(f"expected 0 <= accepted <= proposed, found accepted={accepted}, proposed={proposed}.")
        if proposed == 0:
            return
        self.drafted += proposed
        self.accepted += accepted
        kept = (1 - 1 / self.MEMORY) ** proposed
        self._rate = kept * self._rate + (1 - kept) * accepted / proposed
        if self._rate < self.FLOOR:
            self._resume = self._length + self._pause
            self._pause *= 2
            self._rate = self.FLOOR  # one more bad draft pauses again
        elif self._rate >= self.START:
            self._pause = self.PAUSE

    def _index(self, ids: Sequence[int]) -> None:
        """Bring the index up to date. The n-grams at the very end are left out, since no token follows them yet."""
        end = self._length
        for length, index in self._following.items():
            first = max(self._indexed, self._first + length)  # the first new token that follows a complete n-gram
            if first < end:
                grams = zip(
                    *(ids[first - length + place : end - length + place] for place in range(length)), strict=True
                )
                index.update(zip(map(hash, grams), range(first, end), strict=True))
        self._indexed = end
