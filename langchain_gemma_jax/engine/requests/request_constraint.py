"""``RequestConstraint``: a request's state in its grammar, with the tokens that are legal or forced next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_gemma_jax.engine.host.own_log import OwnLog

if TYPE_CHECKING:
    import numpy as np
    from llguidance import LLMatcher

    from langchain_gemma_jax.grammar.nodes import Unopened
    from langchain_gemma_jax.grammar.vocabulary import Lexicon

_log = OwnLog(__name__)


class Trust:
    """The decision to draw tokens without a mask, in the hope that they are legal. It affects the speed alone.

    A mask can only be made after the token before it. A model that keeps to its grammar by itself needs none: its
    tokens are checked afterwards. An illegal token is drawn again with a mask, and so are the next few; their number
    grows each time that this happens.
    """

    FIRST, GROWTH, MOST = 8, 4, 512  # tokens with a mask after an illegal one
    REGAINED = 32  # legal ones in a row, after which the next illegal one counts as the first

    def __init__(self) -> None:
        self._wary_for = 0
        self._next = self.FIRST
        self._right = 0

    @property
    def wary(self) -> bool:
        """True if the next token should be drawn with a mask."""
        return self._wary_for > 0

    def right(self, count: int) -> None:
        """Note that this number of tokens, drawn without a mask, were legal."""
        if self._wary_for > 0:
            self._wary_for = max(0, self._wary_for - count)
            return
        self._right += count
        if self._right >= self.REGAINED:
            self._next = self.FIRST

    def wrong(self) -> None:
        """Note that a token, drawn without a mask, was illegal."""
        self._wary_for, self._right = self._next, 0
        self._next = min(self._next * self.GROWTH, self.MOST)


class RequestConstraint:
    """A request's state in its grammar. For the owner thread."""

    def __init__(
        self,
        matcher: LLMatcher,
        lexicon: Lexicon,
        stops: frozenset[int],
        trust: Trust,
        opener: int | None,
        free: FreeText | None,
        lost: LostOpener | None = None,
        *,
        forces: bool,
    ) -> None:
        self._matcher, self._lexicon, self._stops = matcher, lexicon, stops
        self._trust, self._opener, self._free, self._forces = trust, opener, free, forces
        self._lost = None if opener is None else lost
        self._taken = 0  # tokens
        self.active = opener is None  # before the opener, every token is legal
        self.illegal = False  # the last token was illegal
        self.cut_off = False  # no more tokens can be drawn: the text ends as it is
        self.allowed: np.ndarray | None = None  # the mask, if the next token is drawn with one

    @property
    def complete(self) -> bool:
        """True if the text may end here."""
        return not self.active or self._matcher.is_accepting()

    @property
    def finished(self) -> bool:
        """True if no token can follow."""
        return self.active and self._matcher.is_stopped() and not self._matcher.is_error()

    @property
    def is_free(self) -> bool:
        """True if the text is free here, so that stop strings apply."""
        return not self.active or (self._free is not None and not self._free.over)

    def ends_with(self, token: int) -> bool:
        """Return True if a stop token ends the answer here."""
        return not self.active or token in self._stops

    def take(self, token: int) -> bool:
        """Advance by a token. Return False if it is illegal."""
        if not self.active:
            self.active = token == self._opener
            if self.active or not self._opens_without(token):
                return True
        if not self._consume(token):
            self._trust.wrong()
            # After an illegal token comes a masked one. If that is illegal too, end the text instead of looping.
            self.cut_off, self.illegal = self._gave_up() or self.illegal, True
            return False
        self.illegal = False
        self._trust.right(1)
        return True

    def _opens_without(self, token: int) -> bool:
        """Return True if a call without its opener has begun. From this token on the text is held to the grammar."""
        if self._lost is None or self._lost.over:
            return False
        tokenizer = self._lexicon.tokenizer
        if (name := tokenizer.control_name(token)) is not None:
            self._lost.control(name)
            return False
        if (before := self._lost.read(tokenizer.token_bytes(token))) is None:
            return False
        known = tokenizer.encode_text(before) if before else []
        self.active = self._matcher.try_consume_tokens(known) == len(known)
        return self.active

    def forced(self) -> list[int]:
        """Return the tokens that come next without an alternative."""
        return self._matcher.compute_ff_tokens() if self._forces and self.active else []

    def closing(self) -> tuple[int, ...]:
        """Return the forced tokens that complete the text; none if forced tokens alone do not.

        A text is complete if no token can follow, or if its last token is a control token that may end it: the part
        before that token cannot change any more.
        """
        if not self.active:
            return ()
        matcher, found = self._matcher.deep_copy(), list[int]()
        while tokens := matcher.compute_ff_tokens():
            for token in tokens:
                if not matcher.try_consume_tokens([token]):
                    return ()
                found.append(token)
                closed = self._lexicon.tokenizer.control_name(token) is not None
                if matcher.is_accepting() and (closed or matcher.is_stopped()):
                    return tuple(found)
        return ()

    def legal(self, tokens: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tokens before the first illegal one."""
        if not self.active:
            return tokens
        return () if self.allowed is not None else tokens[: self._matcher.validate_tokens(list(tokens))]

    def prepare(self) -> None:
        """Make the mask for the next token, if one is needed."""
        self.allowed = self._mask() if self.active and (self.illegal or self._trust.wary) else None

    def _mask(self) -> np.ndarray | None:
        """Return the mask of legal tokens: bit i of word w is token 32 w + i."""
        import numpy as np  # imported here, because processes that only submit requests do not need it

        allowed = np.zeros(self._lexicon.words, np.uint32)
        found = np.frombuffer(self._matcher.compute_bitmask(), np.uint32)[: len(allowed)]
        allowed[: len(found)] = found
        end = self._lexicon.end
        allowed[end // 32] &= ~np.uint32(1 << end % 32)
        if self._matcher.is_accepting():
            for token in self._stops:
                allowed[token // 32] |= np.uint32(1 << token % 32)
        if not allowed.any() and not self._gave_up():
            _log.warning("A grammar allows no token after %d: it is given up", self._taken)
        if self._matcher.is_error() or not allowed.any():
            self.cut_off = True
            return None
        return allowed

    def _consume(self, token: int) -> bool:
        """Advance the matcher by a token. Return False if it is illegal."""
        if token in self._stops:
            return self._matcher.is_accepting()
        # llguidance takes its own end token for the end of a text; here the stops decide on that.
        if token == self._lexicon.end or not self._matcher.try_consume_tokens([token]):
            return False
        self._taken += 1
        if self._free is not None and not self._free.over:
            self._free.read(self._lexicon.tokenizer.token_bytes(token))
        return True

    def _gave_up(self) -> bool:
        """Return True if the matcher has failed. Its message has the text, so only its stop reason is logged."""
        if not self._matcher.is_error():
            return False
        if not self.cut_off:
            _log.warning("A grammar is given up after %d tokens: %s", self._taken, self._matcher.stop_reason())
        return True


class LostOpener:
    """A watch for a call without its opener: at the beginning of a text, or behind a control token."""

    def __init__(self, unopened: Unopened) -> None:
        self._unopened = unopened
        self._begins = tuple(name + then for name in unopened.names for then in unopened.then)
        self._text: str | None = "" if unopened.at_once else None  # what may begin a call; None: it does not

    @property
    def over(self) -> bool:
        """True if no call can begin so any more."""
        return self._text is None and self._unopened.after is None

    def control(self, name: str) -> None:
        """Note a control token."""
        self._text = "" if name == self._unopened.after else None

    def read(self, data: bytes) -> str | None:
        """Read a token. Return what came before it of a call that it shows to be one; None: it shows none."""
        if self._text is None:
            return None
        before, self._text = self._text, (self._text + data.decode("utf-8", "replace")).lstrip()
        if self._text.startswith(self._begins):
            self._text = None
            return before
        if not any(begin.startswith(self._text) for begin in self._begins):
            self._text = None
        return None


class FreeText:
    """A watch for the first line that begins with a marker, in text that comes in pieces."""

    def __init__(self, marker: str) -> None:
        self._wanted = f"\n{marker}".encode()
        self._end = b"\n"  # the last bytes of the text; the beginning counts as the beginning of a line
        self.over = False  # the marker has come

    def read(self, data: bytes) -> None:
        """Feed bytes; note whether the marker came."""
        seen = self._end + data
        self.over = self._wanted in seen
        self._end = seen[-len(self._wanted) + 1 :]
