from __future__ import annotations

import pytest

from langchain_gemma_jax.engine.base.draft_sources import PROMPT, SOURCES, SUFFIXES, checked_sources
from langchain_gemma_jax.errors import InputError


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        (True, SOURCES),
        (False, ()),
        ((), ()),
        ([PROMPT], (PROMPT,)),
        ((PROMPT, SUFFIXES), (SUFFIXES, PROMPT)),
    ],
)
def test_a_choice_is_in_the_order_of_the_sources(value, found):
    assert checked_sources(value) == found


@pytest.mark.parametrize("value", [0, 1, "prompt", b"prompt", ("words",), (PROMPT, PROMPT), (True,), {PROMPT}, [[]]])
def test_what_is_no_choice_is_refused_with_what_there_is(value):
    with pytest.raises(InputError, match=r'^drafts: expected True, False, None, .*"suffixes", "prompt", "mtp"; found '):
        checked_sources(value)
