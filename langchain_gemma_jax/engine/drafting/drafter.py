"""``Drafter``: one request's drafts, from the best of its sources, and as long as it pays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from langchain_gemma_jax.engine.drafting.draft_choice import DraftLength, choose, expected_of
from langchain_gemma_jax.engine.drafting.proposal import NOTHING, Proposal, Source
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.drafting.track_record import TrackRecord
from langchain_gemma_jax.errors import InputError

Legal = Callable[[tuple[int, ...]], tuple[int, ...]]
_AS_GUESSED = RowCosts()  # which nobody adds to


class DraftCount(NamedTuple):
    """The tokens that one source drafted, and those of them that were accepted."""

    drafted: int = 0
    accepted: int = 0

    def plus(self, drafted: int, accepted: int) -> DraftCount:
        return DraftCount(self.drafted + drafted, self.accepted + accepted)


@dataclass(frozen=True)
class _Made:
    """A draft that is being checked."""

    source: str
    proposal: Proposal
    trial: bool


class Drafter:
    """Drafts for one request. For the owner thread.

    Sources are asked in their order, until one fills a draft. The draft is taken that is expected to give the most
    tokens for its cost. Where none pays, because checks are dear or guesses were wrong, nothing is drafted. After
    ``PAUSE`` tokens of that, a short trial shows whether the text has changed. After a trial that was wrong too, the
    next pause is twice as long.
    """

    PAUSE = 64
    TRIAL = 3  # tokens

    def __init__(
        self,
        sources: Mapping[str, Source],
        most: int,
        costs: RowCosts | None = None,
        trust: Mapping[str, float] | None = None,
    ) -> None:
        """``most``: the tokens that can be checked at once. ``trust``: of sources that were tried before."""
        self.counts: dict[str, DraftCount] = {}
        self._sources, self._most = sources, most
        self._costs = RowCosts() if costs is None else costs
        self._records = {name: TrackRecord((trust or {}).get(name, 1.0)) for name in sources}
        self._made: _Made | None = None
        self._pause = self.PAUSE
        self._resume: int | None = None  # the length of the context at which a trial is due

    @property
    def drafted(self) -> int:
        return sum(count.drafted for count in self.counts.values())

    @property
    def accepted(self) -> int:
        return sum(count.accepted for count in self.counts.values())

    @property
    def trust(self) -> dict[str, float]:
        """The trust in each source by what came of its drafts."""
        return {name: record.trust for name, record in self._records.items()}

    def propose(self, context: Sequence[int], room: int, legal: Legal | None = None) -> tuple[int, ...]:
        """Return the tokens to check next; none if that does not pay. Between two calls the context only grows.

        Args:
            context: the prompt, and the answer so far.
            room: the most tokens that there is room for.
            legal: returns the part of a draft that the request's grammar allows.
        """
        self._made, most = None, min(self._most, room)
        if most <= 0:
            return ()
        best, chosen, name = DraftLength(0, 0.0), NOTHING, ""
        for source, asked in self._sources.items():
            proposal = asked.propose(context, most)
            if proposal.tokens and legal is not None:
                proposal = proposal.first(len(legal(proposal.tokens)))
            choice = choose(proposal, self._records[source].trust, self._costs)
            if proposal.tokens and choice.rate > best.rate:
                best, chosen, name = choice, proposal, source
            if choice.count == most:
                break  # no other could give more
        if not chosen.tokens:
            return ()
        trial = not best.pays
        if trial:
            best = self._trial(chosen, len(context))
        else:
            self._resume = None
        if not best.count:
            return ()
        self._made = _Made(name, chosen.first(best.count), trial)
        return self._made.proposal.tokens

    def record(self, proposed: int, accepted: int, counted: int | None = None) -> str:
        """Record the result of the last draft. Return its source.

        Args:
            proposed: the number of its tokens.
            accepted: those of them that were right.
            counted: those of them that the answer got. None: all.
        """
        made, self._made = self._made, None
        if made is None or proposed != len(made.proposal.tokens) or not 0 <= accepted <= proposed:
            known = "none" if made is None else f"one of {len(made.proposal.tokens)}"
            raise InputError(
                f"expected the result of the last draft, found accepted={accepted} of proposed={proposed}, "
                f"and {known} is being checked."
            )
        record = self._records[made.source]
        record.add(proposed, expected_of(made.proposal), accepted)
        if 1 + accepted > self._costs.of(1 + proposed):  # it paid
            self._pause = self.PAUSE
            if made.trial:
                self._records[made.source] = TrackRecord()
        count = self.counts.get(made.source, DraftCount())
        self.counts[made.source] = count.plus(proposed, accepted if counted is None else counted)
        return made.source

    def took(self, rows: int, seconds: float) -> None:
        """Note the seconds of a pass of so many rows for this request alone."""
        self._costs.note(rows, seconds)

    def _trial(self, proposal: Proposal, length: int) -> DraftLength:
        """Return the choice where nothing pays: none, or a few tokens if a trial is due that may pay."""
        fresh = choose(proposal, 1.0, _AS_GUESSED)
        if not fresh.pays:
            return DraftLength(0, 1.0)
        if self._resume is None:
            self._resume = length + self._pause
        if length < self._resume:
            return DraftLength(0, 1.0)
        self._resume, self._pause = None, 2 * self._pause
        return DraftLength(min(fresh.count, self.TRIAL), fresh.rate)
