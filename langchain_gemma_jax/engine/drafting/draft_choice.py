"""The number of tokens of a proposal that are worth checking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from langchain_gemma_jax.engine.drafting.proposal import Proposal

SURE = 0.98  # no token is more certain than this
PAYS = 1.05  # tokens for the time of one, above which a check is worth it: it also waits for the step before it


class Costs(Protocol):
    """The costs of passes by their rows, as multiples of one of a single row."""

    def of(self, rows: int) -> float: ...


@dataclass(frozen=True)
class DraftLength:
    """A number of tokens of a proposal, and the tokens that checking them is expected to give in the time of one."""

    count: int
    rate: float

    @property
    def pays(self) -> bool:
        return self.count > 0 and self.rate > PAYS


def choose(proposal: Proposal, trust: float, costs: Costs) -> DraftLength:
    """Return the best number of tokens to check: the most tokens, with the one behind them, for their cost.

    Args:
        proposal: with its own odds.
        trust: the factor for them.
        costs: of a pass with one more row than tokens are checked.
    """
    best, likely, expected = DraftLength(0, 1.0), 1.0, 0.0
    for count, odds in enumerate(proposal.odds, 1):
        likely *= min(SURE, odds * trust)
        expected += likely
        rate = (1 + expected) / costs.of(count + 1)
        if rate > best.rate:
            best = DraftLength(count, rate)
    return best


def expected_of(proposal: Proposal) -> float:
    """Return how many tokens are accepted in the mean, if a proposal's own odds are right."""
    likely, expected = 1.0, 0.0
    for odds in proposal.odds:
        likely *= odds
        expected += likely
    return expected
