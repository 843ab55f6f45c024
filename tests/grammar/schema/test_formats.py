"""Strings of a format: whatever its pattern lets through, a validator takes."""

from __future__ import annotations

import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_gemma_jax.grammar.schema.formats import UNPROMISED, WHOLE_NUMBERS, format_pattern, known
from tests.dialects.schemas import FORMATS
from tests.dialects.walks import check_let_through


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"type": "string", "format": "date"}, ["2024-02-29", "1999-12-31"], ["2023-02-29", "1999-13-01", "x"]),
        ({"type": "string", "format": "a kind of its own"}, ["anything"], [1]),
    ],
    ids=str,
)
def test_what_is_let_through_and_what_is_not(schema, yes, no):
    check_let_through(schema, yes, no)


@pytest.mark.parametrize("name", FORMATS)
def test_whatever_fits_the_pattern_is_of_the_format(name):
    pattern = format_pattern(name)
    assert pattern in known()
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER

    written = re.sub(r"\\x\{(\w+)\}", lambda found: f"\\u{int(found[1], 16):04x}", pattern.regex)  # as Python does

    @given(st.from_regex(written, fullmatch=True))
    def fits(text):
        checker.check(text, name)

    fits()


def test_other_formats_are_hints_and_numbers_have_bounds():
    assert {format_pattern(name) for name in (*UNPROMISED, *WHOLE_NUMBERS, "a kind of its own")} == {None}
    assert WHOLE_NUMBERS["uint8"] == (0, 255)
