"""Limits on the cost of compiling and matching, and checks whether a text, or any text, fits a part of a grammar."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from langchain_gemma_jax.grammar.lark import lark
from langchain_gemma_jax.grammar.nodes import Grammar, Node

if TYPE_CHECKING:
    from llguidance import LLParserLimits, LLTokenizer

STATES = 60_000  # of a lexer, about 400 bytes each
FUEL = 500_000  # for a whole grammar: 10 ms
FUEL_FOR_ONE = 20_000  # for one part, in addition to its length


def limits(fuel: int = FUEL) -> LLParserLimits:
    """Return the limits at which llguidance gives up on a grammar. Its errors do not repeat the grammar's text."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        initial_lexer_fuel=fuel,
        max_lexer_states=STATES,
        max_items_in_row=20_000,  # the number of optional members that can come next
        step_max_items=200_000,
        verbose_errors=False,
    )


# The last one comes from a class without characters.
_EMPTY = frozenset({"NoExtension", "NoExtensionBias", "InternalError"})


class ReadingError(ValueError):
    """A grammar that no text fits, or that costs too much to compile."""


class Reading:
    """One part of a grammar, without control tokens, compiled so that texts can be matched."""

    def __init__(self, node: Node) -> None:
        """Compile a node of a grammar.

        Raises:
            ReadingError: compiling costs too much, or no text fits it.
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
            ReadingError: matching costs too much.
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
    """Make what the first ``Reading`` in a process needs, so that it does not count as a schema's time."""
    _bytes()


@cache
def _bytes() -> LLTokenizer:
    from llguidance import LLTokenizer

    return LLTokenizer("byte")
