"""What one request is held to: which tokens may come next, which one has to, and how it can end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_gemma_jax.engine.grammar.ending import Place
from langchain_gemma_jax.engine.own_log import OwnLog

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLMatcher

    from langchain_gemma_jax.engine.constraints import Compiled, Lexicon

_log = OwnLog(__name__)


class Trust:
    """Whether tokens are drawn without a mask, in the hope that they are legal. It changes how fast they come alone.

    A mask has to wait for the token before it. A model that keeps to its grammar by itself needs none: its
    tokens are looked at when they are there. One that was wrong is drawn again with a mask, and so are the next few;
    the more often that happens, the more of them.
    """

    FIRST, GROWTH, MOST = 8, 4, 512  # tokens with a mask behind one that was wrong
    REGAINED = 32  # right ones in a row, after which the next wrong one counts as the first

    def __init__(self) -> None:
        self._wary_for = 0
        self._next = self.FIRST
        self._right = 0

    @property
    def wary(self) -> bool:
        """Whether to take a mask."""
        return self._wary_for > 0

    def right(self, count: int) -> None:
        """So many tokens were legal."""
        if self._wary_for > 0:
            self._wary_for = max(0, self._wary_for - count)
            return
        self._right += count
        if self._right >= self.REGAINED:
            self._next = self.FIRST

    def wrong(self) -> None:
        """One was not."""
        self._wary_for, self._right = self._next, 0
        self._next = min(self._next * self.GROWTH, self.MOST)


class Constraint:
    """A request's place in its grammar. For the owner thread."""

    def __init__(
        self,
        compiled: Compiled,
        matcher: LLMatcher,
        lexicon: Lexicon,
        stops: frozenset[int],
        trust: Trust,
        *,
        forces: bool,
    ) -> None:
        self._compiled, self._matcher, self._lexicon = compiled, matcher, lexicon
        self._stops, self._trust, self._forces = stops, trust, forces
        self._place: Place = compiled.outline.start
        self.active = compiled.opener is None  # before the opener, everything is legal
        self.illegal = False  # the last token could not come where it came
        self.cut_off = False  # there is room for no more than the shortest ending
        self.allowed: np.ndarray | None = None  # the mask, if the next token is drawn with one

    @property
    def shortest(self) -> int:
        """How many tokens the shortest text has."""
        return len(self._compiled.shortest) if self._compiled.opener is None else 0

    @property
    def finished(self) -> bool:
        """Whether nothing can follow."""
        return self.active and self._place.complete and not self._place.threads

    @property
    def is_free(self) -> bool:
        """Whether the text is free here, so that stop strings hold."""
        return not self.active or self._compiled.outline.is_free(self._place)

    def ends_with(self, token: int) -> bool:
        """Whether a token that ends answers does so here."""
        return not self.active or token in self._stops

    def take(self, token: int, left: int) -> bool:
        """Go on with a token, if that is legal and can become whole in as many tokens as are left behind it."""
        if self.active:
            return self._take(token, left)
        if token == self._compiled.opener:
            self.cut_off = len(self._compiled.shortest) > left
            self.active = not self.cut_off
        return not self.cut_off

    def _take(self, token: int, left: int) -> bool:
        place = self._behind(token)
        if place is None:
            self._trust.wrong()
            # Behind an illegal token comes a masked one. If that is wrong too, rather end than go round in circles.
            self.cut_off, self.illegal = self.illegal, True
            return False
        self.illegal = False
        self._trust.right(1)
        if not self._can_end(place, left):
            self.cut_off = True
            return False
        self._place = place
        return True

    def forced(self) -> list[int]:
        """The tokens to which there is no alternative."""
        return self._matcher.compute_ff_tokens() if self._forces and self.active else []

    def legal(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """The tokens up to the first that is illegal."""
        if not self.active:
            return tokens
        return () if self.allowed is not None else tokens[: self._matcher.validate_tokens(list(tokens))]

    def prepare(self) -> None:
        """See whether the next token is to be drawn with a mask, and make it."""
        self.allowed = self._mask() if self.active and (self.illegal or self._trust.wary) else None

    def _mask(self) -> np.ndarray | None:
        """The legal tokens: bit i of word w is token 32 w + i."""
        import numpy as np  # not before it is needed: whoever only asks imports this too

        allowed = np.zeros(self._lexicon.words, np.uint32)
        found = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)[: len(allowed)]
        allowed[: len(found)] = found
        end = self._lexicon.end
        allowed[end // 32] &= ~np.uint32(1 << end % 32)
        if self._place.complete:
            for token in self._stops:
                allowed[token // 32] |= np.uint32(1 << token % 32)
        if self._matcher.is_error() or not allowed.any():
            _log.warning("a grammar is given up: %s", self._matcher.get_error() or "it allows no token")
            self.cut_off = True
            return None
        return allowed

    def ending(self) -> tuple[int, ...]:
        """The tokens with which the text becomes whole soonest."""
        return self._lexicon.tokens(self._compiled.outline.ending(self._place)) if self.active else ()

    def _behind(self, token: int) -> Place | None:
        """Where a token leads. None: it is illegal."""
        if token in self._stops:
            return self._place if self._place.complete else None
        if not self._matcher.try_consume_tokens([token]):
            return None
        outline, tokenizer = self._compiled.outline, self._lexicon.tokenizer
        name = tokenizer.control_name(token)
        if name is None:
            place = outline.text(self._place, tokenizer.token_bytes(token))
        else:
            place = outline.control(self._place, name)
        if place.possible:
            return place
        self._matcher.rollback(1)
        return None

    def _can_end(self, place: Place, left: int) -> bool:
        outline = self._compiled.outline
        return outline.cost(place) <= left or len(self._lexicon.tokens(outline.ending(place))) <= left
