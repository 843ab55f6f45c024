"""Parts of grammars, read: what no text fits, and what costs too much."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.grammar.pattern_text import parse
from langchain_gemma_jax.grammar.reading import Reading, ReadingError
from langchain_gemma_jax.grammar.terminals import words


def test_what_nothing_fits_or_costs_too_much_is_said():
    for text, problem in (("^[^\\d\\D]$", "no text fits"), (".*a.{1000}b.{1000}", "costs too much")):
        with pytest.raises(ReadingError, match=problem):
            Reading(words([parse(text)], 0, 3000))
    with pytest.raises(ReadingError, match="costs too much"):
        Reading(words([parse("[a-m].{500}$"), parse("[c-g].{300}$")]))
