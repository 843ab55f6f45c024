"""One format for all templates."""

from __future__ import annotations

from langchain_gemma_jax.dialects import TemplateDialect, grammar_for
from tests.dialects.templated.families import ADD, called, read, takes
from tests.dialects.templated.marked_vocabulary import END


def test_a_template_without_tools_has_them_in_words():
    dialect = TemplateDialect("{{ messages }}", frozenset({END}), (END,))
    assert dialect.form is None
    text = '```tool_call\n{"name": "add", "parameters": {"a": 1}}\n```'
    assert takes(grammar_for([ADD], "any", True, dialect), dialect, text)
    assert called(read(dialect, text)) == [{"a": 1}]
