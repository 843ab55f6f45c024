"""``Suffixes``: proposals for one request from the past answers of its scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_gemma_jax.engine.drafting.past_answers import NOT_FOUND, PastAnswers
from langchain_gemma_jax.engine.drafting.proposal import NOTHING, Proposal


class Suffixes:
    """Proposals for one request: how past answers went on where they were like the end of its context.

    As long as the request goes on like places that were found, these are followed, which is cheaper than a new search.
    """

    def __init__(self, past: Callable[[], PastAnswers | None]) -> None:
        """``past`` returns the answers as they are now; None if there are none."""
        self._past = past
        self._found = NOT_FOUND
        self._length = 0  # of the context, when that was found

    def propose(self, context: Sequence[int], most: int) -> Proposal:
        """Return up to ``most`` tokens that may follow a context. Between two calls it only grows."""
        past = self._past()
        if past is None:
            return NOTHING
        before, found = self._found, NOT_FOUND
        if before.places:
            found = past.follow(before, context[self._length :])
        longest = past.GRAMS[0]
        if not found.places or before.match < longest <= found.match:  # there may be better places by now
            found = past.find(context)
        self._found, self._length = found, len(context)
        return past.proposal(found, most)
