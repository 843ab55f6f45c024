"""``ModelDrafts``: a model's drafts: its sources, the past answers of each scope, and what checks cost."""

from __future__ import annotations

import time
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SUFFIXES
from langchain_gemma_jax.engine.drafting.drafter import Drafter
from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers
from langchain_gemma_jax.engine.drafting.prompt_lookup import PromptLookup
from langchain_gemma_jax.engine.drafting.proposal import Source
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.drafting.suffixes import Suffixes

IDLE_SECONDS = 5.0  # from a scope's latest answer until its answers are written
LOOK_SECONDS = 0.05  # until it is tried again, where the disk is busy
FIXED = 2048  # bytes of a scope beside its answers: about what its objects take


class Keeper(Protocol):
    """A place where past answers outlive the process. Files are read and written in the background."""

    def ask(self, scope: str) -> None: ...

    def comes(self, scope: str) -> bool: ...

    def arrived(self, scope: str) -> PastAnswers | None: ...

    def write(self, scope: str, tokens: array[int]) -> bool: ...

    def forget(self, scope: str) -> None: ...


@dataclass(eq=False)
class ScopeDrafts:
    """The memory of one scope: its past answers, and how far each source was trusted in its last request."""

    past: PastAnswers = field(default_factory=PastAnswers)
    trust: tuple[tuple[str, float], ...] = ()
    added_at: float | None = None  # when its latest answer came that is not written yet


class ModelDrafts:
    """The drafts of one model. Any thread may ask for a request's drafter; the rest is for the owner thread.

    Nothing of one scope is ever proposed to another: each has an index of its own. Beyond ``most_bytes`` for all of
    them, the scope that was used least recently is forgotten.
    """

    MOST_BYTES = 64 * 2**20

    def __init__(self, sources: tuple[str, ...], most: int, *, most_bytes: int = MOST_BYTES) -> None:
        """``most``: the tokens that can be checked at once. ``most_bytes`` bounds the memory of all past answers."""
        self.costs = RowCosts()
        self._sources, self._most, self._most_bytes = sources, most, most_bytes
        self._scopes: OrderedDict[str, ScopeDrafts] = OrderedDict()  # the least recently used first
        self._nbytes: dict[str, int] = {}  # by scope
        self._total = 0
        self._keeper: Keeper | None = None

    @property
    def on(self) -> bool:
        """True if anything can be drafted."""
        return bool(self._sources) and self._most > 0

    @property
    def nbytes(self) -> int:
        """The bytes of all past answers."""
        return self._total

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes whose answers are known, the least recently used first."""
        return tuple(self._scopes)

    def drafter(self, scope: str) -> Drafter | None:
        """Return the drafter of a request of this scope; None if nothing is drafted."""
        if not self.on:
            return None
        if self._keeper is not None and SUFFIXES in self._sources:
            self._keeper.ask(scope)
        known = self._scopes.get(scope)
        made: dict[str, Source] = {SUFFIXES: Suffixes(partial(self.past, scope)), PROMPT: PromptLookup()}
        trust = {} if known is None else {name: min(1.0, (1 + each) / 2) for name, each in known.trust}
        return Drafter({name: made[name] for name in self._sources if name in made}, self._most, self.costs, trust)

    def past(self, scope: str) -> PastAnswers | None:
        """Return the past answers of a scope; None if there are none."""
        self._take_in(scope)
        known = self._scopes.get(scope)
        if known is None:
            return None
        self._scopes.move_to_end(scope)
        return known.past

    def add(self, scope: str, prompt: Sequence[int], answer: Sequence[int], drafter: Drafter) -> None:
        """Add the answer to a request of this scope, and what its drafter found out."""
        self._take_in(scope)
        known = self._scopes.setdefault(scope, ScopeDrafts())
        self._scopes.move_to_end(scope)
        known.trust = tuple(drafter.trust.items())
        if SUFFIXES in self._sources:
            known.past.add(prompt, answer)
            known.added_at = time.monotonic()
        self._bound(scope, known)

    def forget(self, scope: str | None = None) -> None:
        """Forget the answers of a scope. None: of all."""
        for each in (scope,) if scope is not None else self.scopes:
            self._scopes.pop(each, None)
            self._count(each, 0)
            self._nbytes.pop(each, None)
            if self._keeper is not None:
                self._keeper.forget(each)

    # Answers that outlive the process.

    def keep_in(self, keeper: Keeper | None) -> None:
        """Have past answers read from there, and written to it. None: they are kept in memory alone."""
        self._keeper = keeper

    def save_idle(self, now: float) -> float | None:
        """Begin to write the answers of scopes that are idle. Return the seconds until the next may be.

        ``now``: by ``time.monotonic``.
        """
        waits = []
        for scope, known in self._scopes.items() if self._keeper is not None else ():
            if known.added_at is None:
                continue
            left = known.added_at + IDLE_SECONDS - now
            if left > 0 or not self._saved(scope, known):
                waits.append(max(left, LOOK_SECONDS))
        return min(waits, default=None)

    def save_all(self) -> None:
        """Begin to write what is not written yet: the engine ends."""
        for scope, known in self._scopes.items() if self._keeper is not None else ():
            if known.added_at is not None:
                self._saved(scope, known)

    def _saved(self, scope: str, known: ScopeDrafts) -> bool:
        if self._keeper is None or self._keeper.comes(scope):
            return False  # what is there would be lost
        self._merge(scope, known)
        if not self._keeper.write(scope, known.past.tokens):
            return False
        known.added_at = None
        return True

    def _take_in(self, scope: str) -> None:
        """Take in what was read of a scope's earlier answers."""
        if self._keeper is None:
            return
        known = self._scopes.get(scope)
        if known is not None:
            self._merge(scope, known)
        elif (past := self._keeper.arrived(scope)) is not None:
            known = self._scopes[scope] = ScopeDrafts(past)
            self._bound(scope, known)

    def _merge(self, scope: str, known: ScopeDrafts) -> None:
        """Put what was read of a scope's earlier answers before those that came meanwhile."""
        past = None if self._keeper is None else self._keeper.arrived(scope)
        if past is None:
            return
        for answer in known.past.answers:
            past.add((), answer)
        known.past = past
        self._count(scope, FIXED + len(scope) + past.nbytes)

    def _bound(self, scope: str, known: ScopeDrafts) -> None:
        self._count(scope, FIXED + len(scope) + known.past.nbytes)
        while self.nbytes > self._most_bytes:
            oldest = next(iter(self._scopes))
            if self._keeper is not None and self._scopes[oldest].added_at is not None:
                self._saved(oldest, self._scopes[oldest])
            self.forget(oldest)

    def _count(self, scope: str, nbytes: int) -> None:
        self._total += nbytes - self._nbytes.get(scope, 0)
        self._nbytes[scope] = nbytes
