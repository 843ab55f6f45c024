"""Every public error has a heading on the page about errors, and each error that is raised leads there."""

from __future__ import annotations

import copy
import pickle
import re
import traceback
from pathlib import Path

import langchain_gemma_jax
from langchain_gemma_jax import errors
from langchain_gemma_jax.chat.answering.cut_off import CutOffError
from langchain_gemma_jax.errors import PAGE, ContextLengthError, DeadlineError, GemmaJaxError, InputError, SchemaError

ROOT = Path(__file__).parents[1]


def tree(kind: type[GemmaJaxError] = GemmaJaxError) -> set[type[GemmaJaxError]]:
    return {kind}.union(*(tree(each) for each in kind.__subclasses__()))


def test_every_public_error_has_a_heading_and_every_heading_is_one():
    named = (getattr(langchain_gemma_jax, name) for name in langchain_gemma_jax.__all__)
    public = {kind for kind in named if isinstance(kind, type) and issubclass(kind, GemmaJaxError)}
    assert {kind for kind in vars(errors).values() if isinstance(kind, type) and kind in tree()} <= public
    headings = re.findall(r"^###? (\w+Error)$", (ROOT / PAGE).read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(kind.__name__ for kind in public)
    assert {kind.__name__.lower() for kind in public} == {kind.anchor for kind in public}
    assert {kind.anchor for kind in tree()} == {heading.lower() for heading in headings}, "errors inside lead to these"


def test_an_error_ends_with_its_link_wherever_it_goes():
    class OwnError(SchemaError):
        """One that is made elsewhere: its link is that of what it is."""

    for error in (
        InputError("top_p: expected 0 to 1, found 1.5."),
        DeadlineError("The time was up."),
        ContextLengthError(20, 10),
        OwnError("#/a", "too large"),
        CutOffError("max_tokens were used up", llm_output="{"),
    ):
        link = f"More: {PAGE}#{type(error).anchor}"
        assert "More:" not in str(error)
        assert traceback.format_exception_only(error)[-1] == f"{link}\n"
        twins = (
            [copy.copy(error)] if isinstance(error, OwnError) else [copy.copy(error), pickle.loads(pickle.dumps(error))]
        )
        for twin in twins:
            assert (str(twin), twin.__notes__) == (str(error), [link])
        error.add_note("It is text 1 of those that were given.")
        assert error.__notes__[0] == link
