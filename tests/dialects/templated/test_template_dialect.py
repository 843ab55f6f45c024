"""One format for all templates."""

from __future__ import annotations

import json
from dataclasses import replace

from langchain_gemma_jax.dialects import Message, TemplateDialect, ToolCall, grammar_for, template_dialect
from tests.dialects.templated.families import ADD, called, read, takes
from tests.dialects.templated.marked_vocabulary import END


def test_a_template_without_tools_has_them_in_words():
    dialect = TemplateDialect("{{ messages }}", frozenset({END}), (END,))
    assert dialect.form is None
    text = '```tool_call\n{"name": "add", "parameters": {"a": 1}}\n```'
    assert takes(grammar_for([ADD], "any", True, dialect), dialect, text)
    assert called(read(dialect, text)) == [{"a": 1}]


def test_tools_that_were_found_are_in_the_result_and_the_beginning_stays(monkeypatch):
    """Templates declare tools at the beginning alone, where nothing may change."""
    monkeypatch.setattr(template_dialect, "render", lambda _, chat, forms, __, **___: json.dumps([forms, chat]))
    result = Message.tool({"found": ["add"]}, id="1")
    found = replace(result, result=replace(result.result, declares=(ADD,)))
    dialect = TemplateDialect("tools <tool_call>", frozenset({END}), (END,))
    messages = [Message.user("Hi"), Message.assistant(calls=[ToolCall("search", {}, "1")])]
    forms, chat = json.loads(dialect.render([*messages, found], [ADD]).text)
    assert [form["function"]["name"] for form in forms] == ["add"]
    told = json.loads(chat[-1]["content"])
    assert told["found"] == ["add"]
    assert told["tools"] == [forms[0]["function"]]
