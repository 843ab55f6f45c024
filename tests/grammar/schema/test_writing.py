"""Values as a model writes JSON: in the order of the schema, with a space after commas and colons."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.grammar.nodes import Literal
from langchain_gemma_jax.grammar.pattern_text import parse
from langchain_gemma_jax.grammar.reading import Reading
from langchain_gemma_jax.grammar.schema.writing import LONGEST_KEY, Asked, JsonWriting

WRITING = JsonWriting()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES)
def test_constants_are_as_python_writes_them(value):
    written = WRITING.constant(value)
    assert isinstance(written, Literal)
    assert written.text == json.dumps(value, ensure_ascii=False)
    assert json.loads(written.text) == value or math.isnan(value)


@given(st.text(max_size=5), st.integers(0, 3), st.none() | st.integers(3, 5))
def test_strings_have_the_lengths_that_were_asked_for(text, low, high):
    fits = Reading(WRITING.string(Asked((), low, high))).fits
    steers = any((ord(one) < 32 and one not in "\n\r\t") or ord(one) == 127 for one in text)
    assert steers or fits(json.dumps(text, ensure_ascii=False)) == (low <= len(text) <= (high or 99))


def test_names_that_a_schema_leaves_free_are_short_and_none_of_its_own():
    fits = Reading(WRITING.free_name(Asked(), frozenset({"own"}))).fits
    assert [fits(name) for name in ("a", "own", "", "x" * LONGEST_KEY, "x" * (LONGEST_KEY + 1), '"')] == [
        True, False, False, True, False, False,
    ]  # fmt: skip
    fits = Reading(WRITING.free_name(Asked((parse("^x_"),)), frozenset())).fits
    assert (fits("x_" + "a" * 99), fits("y_")) == (True, False)
    assert WRITING.key("a") == Literal('"a": ')
    assert WRITING.ordered(["b", "a"]) == ["b", "a"]
