"""``Proposal``: tokens that may come next, with a guess of how likely each is; and the seam of what makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Proposal:
    """Tokens that may come next. Each has odds: the guessed probability that it is right if those before it are."""

    tokens: tuple[int, ...] = ()
    odds: tuple[float, ...] = ()

    def first(self, count: int) -> Proposal:
        """Return the proposal of the first ``count`` tokens."""
        return Proposal(self.tokens[:count], self.odds[:count])


NOTHING = Proposal()


class Source(Protocol):
    """A source of proposals for one request."""

    def propose(self, context: Sequence[int], most: int) -> Proposal:
        """Return up to ``most`` tokens that may follow a context. Between two calls it only grows."""
        ...


def odds_behind(match: int, count: int, share: float = 1.0) -> tuple[float, ...]:
    """Return the odds of ``count`` tokens, copied from a place before which ``match`` tokens are the same.

    A longer match is a better sign, and each copied token that was right makes the match longer. ``share`` is how many
    of the places that match go on like this.

    >>> [round(odds, 2) for odds in odds_behind(3, 3)], [round(odds, 2) for odds in odds_behind(12, 2)]
    ([0.6, 0.67, 0.71], [0.86, 0.87])
    """
    return tuple(share * length / (length + 2) for length in range(match, match + count))
