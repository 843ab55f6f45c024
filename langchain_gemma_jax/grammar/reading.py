"""What compiling and matching may cost, and whether a text fits a part of a grammar, or any text does."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from langchain_gemma_jax.grammar.lark import lark
from langchain_gemma_jax.grammar.nodes import Grammar, Node

if TYPE_CHECKING:
    from llguidance import LLParserLimits, LLTokenizer

STATES = 60_000  # of a lexer, of about 400 bytes each
FUEL = 500_000  # for a whole grammar: 10 ms
FUEL_FOR_ONE = 20_000  # for one part, besides what it takes to read it


def limits(fuel: int = FUEL) -> LLParserLimits:
    """Return how far llguidance goes before it gives a grammar up. Its errors do not repeat what the grammar says."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        initial_lexer_fuel=fuel,
        max_lexer_states=STATES,
        max_items_in_row=20_000,  # as many optional members can come next
        step_max_items=200_000,
        verbose_errors=False,
    )


# The last one is of a class without characters.
_EMPTY = frozenset({"NoExtension", "NoExtensionBias", "InternalError"})


class ReadingError(ValueError):
    """A grammar that no text fits, or that costs too much to read."""


class Reading:
    """One part of a grammar, without control tokens, and which texts fit it."""

    def __init__(self, node: Node) -> None:
        """Compile a node of a grammar.

        Raises:
            ReadingError: it costs too much, or no text fits it.
        """
        from llguidance import LLMatcher

        text = lark(Grammar("", node, {}), {})
        written = LLMatcher.grammar_from_lark(text)
        self._matcher = LLMatcher(_bytes(), written, log_level=0, limits=limits(FUEL_FOR_ONE + len(text)))
        self._check()
        if not self._matcher.is_accepting():
            self._matcher.compute_bitmask()
            if self._matcher.stop_reason() in _EMPTY:
                raise ReadingError("no text fits all that is asked of it")
            self._check()

    def fits(self, text: str) -> bool:
        """Return True if all of a text fits.

        Raises:
            ReadingError: it costs too much to tell.
        """
        self._matcher.reset()
        data = list(text.encode())
        found = self._matcher.try_consume_tokens(data) == len(data) and self._matcher.is_accepting()
        self._check()
        return found

    def _check(self) -> None:
        if self._matcher.is_error():
            raise ReadingError("it costs too much to compile: ask for shorter texts, or for a simpler pattern")


def prepare() -> None:
    """Make what the first reading of a process needs, so that no schema's time is spent on it."""
    _bytes()


@cache
def _bytes() -> LLTokenizer:
    from llguidance import LLTokenizer

    return LLTokenizer("byte")
