"""Each family's form of calls: what its grammar lets through, its parser reads, whether marks are tokens or text."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.dialects import CallBegin, Invalid, TextDelta, grammar_for
from langchain_gemma_jax.dialects.templated.call_forms import form_of
from langchain_gemma_jax.errors import InputError
from tests.dialects.templated.families import ADD, EACH, FAMILIES, called, dialect_of, read, takes
from tests.dialects.templated.marked_vocabulary import END


@pytest.mark.parametrize(("name", "as_tokens"), EACH)
def test_a_grammar_lets_a_familys_calls_through_and_its_parser_reads_them(name, as_tokens):
    dialect = dialect_of(name, as_tokens=as_tokens)
    assert dialect.form.name == name
    _, _, one, two = FAMILIES[name]
    assert dialect.opener_is_control == (as_tokens and name != "llama")
    for choice in ("any", "add"):
        assert takes(grammar_for([ADD], choice, False, dialect), dialect, one)
        assert takes(grammar_for([ADD], choice, True, dialect), dialect, two)
        assert not takes(grammar_for([ADD], choice, False, dialect), dialect, two)
        assert not takes(grammar_for([ADD], choice, True, dialect), dialect, one.replace("add", "sub"))
        assert not takes(grammar_for([ADD], choice, True, dialect), dialect, one.replace("1", '"x"'))
    free = grammar_for([ADD], "auto", True, dialect)
    assert takes(free, dialect, "Hello.") or free.opener is not None
    assert takes(free, dialect, one)
    if name != "llama":
        assert takes(free, dialect, f"Hello.\n{one}")
    assert not takes(free, dialect, one.replace("1", '"x"'))
    rng = random.Random(3)
    for _ in range(30):
        for text, count in ((one, 1), (two, 2)):
            events = read(dialect, text + END, rng)
            assert [event for event in events if isinstance(event, Invalid | TextDelta)] == []
            assert [event.name for event in events if isinstance(event, CallBegin)] == ["add"] * count
            assert called(events) == [{"a": 1}, {"a": 2}][:count]


def test_names_that_cannot_be_written_are_refused():
    form = form_of("tools [TOOL_CALLS] [ARGS]")
    form.check_name("do it")
    with pytest.raises(InputError, match="without brackets"):
        form.check_name("a[0]")
