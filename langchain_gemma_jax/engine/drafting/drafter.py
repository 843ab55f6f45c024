"""``Drafter``: one request's drafts, from the best of its sources, and as long as it pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from langchain_gemma_jax.engine.base.draft_sources import MTP
from langchain_gemma_jax.engine.drafting.chain import HOPED, Chain, best_count, guesses
from langchain_gemma_jax.engine.drafting.draft_choice import DraftLength, choose, expected_of
from langchain_gemma_jax.engine.drafting.proposal import NOTHING, Proposal, Source
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.drafting.track_record import TrackRecord
from langchain_gemma_jax.errors import InputError

Legal = Callable[[tuple[int, ...]], tuple[int, ...]]
_AS_GUESSED = RowCosts()  # without measurements


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
    guessed: int = 0  # tokens that a chain guessed, of which the proposal has the legal ones ...
    seconds: float = 0.0  # ... and how long that took


class Drafter:
    """Drafts for one request. For the owner thread.

    Sources are asked in their order, until one fills a draft. The draft is taken that is expected to give the most
    tokens for its cost. Where none pays, because checks are dear or guesses were wrong, nothing is drafted. After
    ``PAUSE`` tokens of that, a short trial shows whether the text has changed. After a trial that was wrong too, the
    next pause is twice as long.

    A drafter on the device comes last, as its guesses cost time: it is asked where it promises more than the others.
    """

    PAUSE = 64
    TRIAL = 3  # tokens
    HOPEFUL = 1.25  # speed that a trial promises at least: a match of the last token alone, 1.1, is no reason for one

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
        self._chain_record = TrackRecord((trust or {}).get(MTP, 1.0))
        self._made: _Made | None = None
        self._checked: _Made | None = None  # the last one whose result is known
        self.wants_state = False  # a chain would pay, and has no hidden state to begin from: a check would give one
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
        chain = {MTP: self._chain_record.trust} if MTP in self.counts else {}
        return {name: record.trust for name, record in self._records.items()} | chain

    def propose(
        self,
        context: Sequence[int],
        room: int,
        legal: Legal | None = None,
        chain: Chain | None = None,
        alike: int = 1,
    ) -> tuple[int, ...]:
        """Return the tokens to check next; none if that does not pay. Between two calls the context only grows.

        Args:
            context: the prompt, and the answer so far.
            room: the most tokens that there is room for.
            legal: returns the part of a draft that the request's grammar allows.
            chain: the model's drafter on the device. None: it has none, or it is not to be used.
            alike: the requests that share a step, this one included.
        """
        self._made, self.wants_state, most = None, False, min(self._most, room)
        if most <= 0:
            return ()
        best, chosen, name = self._best_of_sources(context, most, legal)
        if chain is not None and best.count < most and self._costs.know_one:
            found = best_count(chain.counts, most, self._chain_record.trust, self._costs, alike)
            if found.pays and found.rate > best.rate:
                self._resume = None
                return self._from_chain(chain, found, legal)
            if not chosen.tokens:
                hoped = best_count(chain.counts, min(most, self.TRIAL), HOPED, self._costs, alike)
                hoped = self._trial(hoped, len(context), begin=chain.ready)
                return self._from_chain(chain, hoped, legal, trial=True)
        if not chosen.tokens:
            return ()
        trial = not best.pays
        if trial:
            fresh = choose(chosen, 1.0, _AS_GUESSED)
            if fresh.rate < self.HOPEFUL:
                return ()
            best = self._trial(DraftLength(min(fresh.count, self.TRIAL), fresh.rate), len(context))
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
        self._checked = made
        record = self._chain_record if made.source == MTP else self._records[made.source]
        record.add(proposed, expected_of(made.proposal), accepted)
        cost = self._costs.of(1 + proposed) + (self._costs.of_chain(made.guessed) if made.guessed else 0.0)
        if 1 + accepted > cost:  # it paid
            self._pause = self.PAUSE
            if made.trial:
                record.forget()
        count = self.counts.get(made.source, DraftCount())
        self.counts[made.source] = count.plus(proposed, accepted if counted is None else counted)
        return made.source

    def took(self, rows: int, seconds: float) -> None:
        """Note the seconds of a pass of so many rows for this request alone, the guesses of a chain included."""
        made, self._checked = self._checked, None
        if made is not None and made.guessed and rows == 1 + len(made.proposal.tokens):
            self._costs.note_chain(made.guessed, made.seconds)
            seconds -= made.seconds
        self._costs.note(rows, max(0.0, seconds))

    def _best_of_sources(
        self, context: Sequence[int], most: int, legal: Legal | None
    ) -> tuple[DraftLength, Proposal, str]:
        """Return the best proposal of what was said before, how much of it to check, and its source."""
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
        return best, chosen, name

    def _from_chain(
        self, chain: Chain, best: DraftLength, legal: Legal | None, *, trial: bool = False
    ) -> tuple[int, ...]:
        """Return so many of a chain's guesses as are legal; none while there is no state to begin from."""
        if not best.count:
            return ()
        if not chain.ready:
            self.wants_state = True
            return ()
        began = time.perf_counter()
        tokens = guessed = chain.guess(best.count)
        seconds = time.perf_counter() - began
        if legal is not None:
            tokens = legal(tokens)
        if not tokens:
            self._chain_record.add(len(guessed), expected_of(guesses(guessed)), 0)
            return ()
        self._made = _Made(MTP, guesses(tokens), trial, len(guessed), seconds)
        return tokens

    def _trial(self, fresh: DraftLength, length: int, *, begin: bool = True) -> DraftLength:
        """Return the choice where nothing pays: none, or a few tokens if a trial is due that may pay.

        ``fresh``: what a new source would choose. ``begin``: the trial begins now, if it is due.
        """
        if not fresh.pays:
            return DraftLength(0, 1.0)
        if self._resume is None:
            self._resume = length + self._pause
        if length < self._resume:
            return DraftLength(0, 1.0)
        if begin:
            self._resume, self._pause = None, 2 * self._pause
        return fresh
