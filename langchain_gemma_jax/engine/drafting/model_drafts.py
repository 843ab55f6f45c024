"""``ModelDrafts``: a model's drafts: its sources, the past answers of each scope, and what checks cost."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SUFFIXES
from langchain_gemma_jax.engine.drafting.drafter import Drafter
from langchain_gemma_jax.engine.drafting.past_answers import PastAnswers
from langchain_gemma_jax.engine.drafting.prompt_lookup import PromptLookup
from langchain_gemma_jax.engine.drafting.proposal import Source
from langchain_gemma_jax.engine.drafting.row_costs import RowCosts
from langchain_gemma_jax.engine.drafting.suffixes import Suffixes

FIXED = 2048  # bytes of a scope beside its answers: about what its objects take


@dataclass(eq=False)
class ScopeDrafts:
    """The memory of one scope: its past answers, and how far each source was trusted in its last request."""

    past: PastAnswers = field(default_factory=PastAnswers)
    trust: tuple[tuple[str, float], ...] = ()


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
        known = self._scopes.get(scope)
        made: dict[str, Source] = {SUFFIXES: Suffixes(partial(self.past, scope)), PROMPT: PromptLookup()}
        trust = {} if known is None else {name: min(1.0, (1 + each) / 2) for name, each in known.trust}
        return Drafter({name: made[name] for name in self._sources}, self._most, self.costs, trust)

    def past(self, scope: str) -> PastAnswers | None:
        """Return the past answers of a scope; None if there are none."""
        known = self._scopes.get(scope)
        if known is None:
            return None
        self._scopes.move_to_end(scope)
        return known.past

    def add(self, scope: str, prompt: Sequence[int], answer: Sequence[int], drafter: Drafter) -> None:
        """Add the answer to a request of this scope, and what its drafter found out."""
        known = self._scopes.setdefault(scope, ScopeDrafts())
        self._scopes.move_to_end(scope)
        known.trust = tuple(drafter.trust.items())
        if SUFFIXES in self._sources:
            known.past.add(prompt, answer)
        self._count(scope, FIXED + len(scope) + known.past.nbytes)
        while self.nbytes > self._most_bytes:
            self.forget(next(iter(self._scopes)))

    def forget(self, scope: str | None = None) -> None:
        """Forget the answers of a scope. None: of all."""
        for each in (scope,) if scope is not None else self.scopes:
            self._scopes.pop(each, None)
            self._count(each, 0)
            self._nbytes.pop(each, None)

    def _count(self, scope: str, nbytes: int) -> None:
        self._total += nbytes - self._nbytes.get(scope, 0)
        self._nbytes[scope] = nbytes
