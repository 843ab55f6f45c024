"""Prompt lookup: proposes the next tokens from earlier text that repeats itself, without a second model.

Agents repeat a lot: arguments copied from a tool's result, code with one changed line, keys of JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_gemma_jax.engine.drafting.proposal import NOTHING, Proposal, odds_behind
from langchain_gemma_jax.errors import InputError


class PromptLookup:
    """Proposals for one request: the tokens that followed the last time that its context ended like this.

        >>> lookup = PromptLookup()
        >>> lookup.propose([6, 7, 8, 9, 1, 2, 5, 6, 7, 8], 4).tokens
        (9, 1, 2, 5)

    The last 12 tokens are looked up first, then the last 6, then the last 3 (``ngrams``); the most recent earlier
    occurrence counts. Long n-grams find the right place in a list of similar things. A proposal that reaches the end of
    the context continues with itself, so a period continues: ``a b c d a b c`` is followed by ``d a b c d a b``.

    The context is read where the request has it, and indexed when a proposal is asked for: without drafts a prompt
    costs nothing. Memory is bounded: at least the later half of the last ``span`` tokens of the context is indexed.
    """

    def __init__(self, ngrams: tuple[int, ...] = (3, 6, 12), span: int = 131_072) -> None:
        if min(ngrams, default=0) < 1 or span < 2 * max(ngrams):
            raise InputError(
                "expected one or more ngrams, each at least 1, and a span of at least twice the longest; "
                f"found ngrams={ngrams}, span={span}."
            )
        self._span = span
        # By length: the index of the token after an n-gram's last occurrence, by the n-gram's hash. If two n-grams
        # share a hash, that is a wrong guess like any other.
        self._following: dict[int, dict[int, int]] = {length: {} for length in sorted(set(ngrams), reverse=True)}
        self._length = 0  # of the context, when it was last read
        self._first = 0  # what is before this position is forgotten
        self._indexed = 0  # ids before this position follow an n-gram that is in the index

    def propose(self, context: Sequence[int], most: int) -> Proposal:
        """Return ``most`` tokens that probably follow this context, or none. Between two calls it only grows."""
        self._length = len(context)
        if self._length - self._first > self._span:
            self._first = self._indexed = self._length - self._span // 2
            for index in self._following.values():
                index.clear()
        self._index(context)
        for length, index in self._following.items():
            if self._length - self._first <= length:
                continue
            if (following := index.get(hash(tuple(context[-length:])))) is not None:
                known = context[following : following + most]
                tokens = tuple(known[place % len(known)] for place in range(most))
                return Proposal(tokens, odds_behind(length, most))
        return NOTHING

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
