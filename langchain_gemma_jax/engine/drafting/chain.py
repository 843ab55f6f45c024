"""``Chain``: the seam of a drafter on the device, whose guesses cost time, so that their number is chosen before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from langchain_gemma_jax.engine.drafting.draft_choice import DraftLength, choose
from langchain_gemma_jax.engine.drafting.proposal import Proposal
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts

ODDS = 0.7  # of each guess, until a request's own show it
HOPED = 1.3  # the factor for them with which a trial is worth it


class Chain(Protocol):
    """A drafter, asked for one request."""

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of guesses that it can make now, the smallest first."""
        ...

    @property
    def ready(self) -> bool:
        """True if the hidden state behind the newest token is there. It is after a prompt, and after a check."""
        ...

    def guess(self, count: int) -> tuple[int, ...]:
        """Return the next tokens as it guesses them."""
        ...


@dataclass(frozen=True)
class ChainCosts:
    """The costs of a check together with the chain that it checks, beside those of a step.

    ``alike`` requests share a step, and each is checked by itself.
    """

    costs: RowCosts
    count: int
    alike: int = 1

    def of(self, rows: int) -> float:
        return (self.costs.of(rows) + self.costs.of_chain(self.count)) * self.alike / self.costs.of(self.alike)


def guesses(tokens: tuple[int, ...]) -> Proposal:
    """Return the proposal of a chain's guesses. All of them have the same odds."""
    return Proposal(tokens, (ODDS,) * len(tokens))


def best_count(counts: tuple[int, ...], most: int, trust: float, costs: RowCosts, alike: int = 1) -> DraftLength:
    """Return the best number of guesses to ask a chain for, with what they are expected to give for their cost.

    Args:
        counts: the numbers to choose from.
        most: the tokens that there is room for.
        trust: the factor for the odds of guesses.
        costs: of passes, and of guesses.
        alike: the requests that share a step, this one included: beside others, a check has to give more.
    """
    best = DraftLength(0, 1.0)
    for count in counts:
        if count <= most:
            found = choose(guesses((0,) * count), trust, ChainCosts(costs, count, alike))
            if found.rate > best.rate and found.count == count:
                best = found
    return best
