"""Each family's form of calls: what its grammar lets through, its parser reads, whether marks are tokens or text."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest

from langchain_gemma_jax.dialects import (
    CallBegin,
    CallEnd,
    Invalid,
    TemplateDialect,
    TextDelta,
    ThoughtDelta,
    Tool,
    grammar_for,
    json_grammar,
    merged,
)
from langchain_gemma_jax.dialects.templated.call_forms import form_of
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.errors import InputError
from tests.dialects.templated.marked_vocabulary import END, vocabulary

ADD = Tool(
    "add",
    "",
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
)
# What a template shows, the marks that can be control tokens, and one call and two calls as the family writes them.
FAMILIES = {
    "hermes": (
        "tools <tool_call>",
        ("<tool_call>", "</tool_call>"),
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n'  # noqa: ISC004  one text
        '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>',
    ),
    "llama": (
        "tools <|python_tag|>",
        ("<|python_tag|>",),
        '{"name": "add", "parameters": {"a": 1}}',
        '{"name": "add", "parameters": {"a": 1}}\n{"name": "add", "parameters": {"a": 2}}',
    ),
    "mistral": (
        "tools [TOOL_CALLS]",
        ("[TOOL_CALLS]",),
        '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]',
        '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a": 2}}]',
    ),
    "mistral with names": (
        "tools [TOOL_CALLS] [ARGS]",
        ("[TOOL_CALLS]", "[ARGS]"),
        '[TOOL_CALLS]add[ARGS]{"a": 1}',
        '[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]add[ARGS]{"a": 2}',
    ),
    "listed": (
        "tools <|tool_call|>",
        ("<|tool_call|>",),
        '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}]',
        '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a": 2}}]',
    ),
    "listed and closed": (
        "tools <|tool_call|> <|/tool_call|>",
        ("<|tool_call|>", "<|/tool_call|>"),
        '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}]<|/tool_call|>',
        '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a": 2}}]<|/tool_call|>',
    ),
}
EACH = [
    (name, as_tokens) for name in FAMILIES for as_tokens in (True, False) if as_tokens or name != "mistral with names"
]


def dialect_of(name: str, *, as_tokens: bool) -> TemplateDialect:
    source, marks, *_ = FAMILIES[name]
    return TemplateDialect(source, frozenset({END, *(marks if as_tokens else ())}), (END,))


def pieces(text: str, control) -> list[tuple[str, bool]]:
    names = "|".join(map(re.escape, sorted(control, key=len, reverse=True)))
    return [(part, part in control) for part in re.split(f"({names})", text) if part]


def read(dialect, text, rng=None):
    """The events of a text, fed in pieces of any length."""
    parser, events = dialect.parser(), []
    for part, is_control in pieces(text, dialect.control):
        cuts = [0, len(part)]
        if rng is not None and not is_control:
            cuts = sorted({0, len(part), *(rng.randrange(len(part)) for _ in range(3))})
        for start, end in pairwise(cuts):
            events += parser.feed(part[start:end], is_control)
    return merged(events + parser.finish())


def called(events):
    return [event.arguments for event in events if isinstance(event, CallEnd)]


def takes(grammar, dialect, text):
    known = vocabulary(sorted(dialect.control - {END}))
    rule = ModelGrammars(known, known.vocab_size).of(grammar, frozenset(), forces=False)
    ids = []
    for part, is_control in pieces(text, dialect.control):
        ids += [known.control_id(part)] if is_control else known.encode_text(part)
    return all(map(rule.take, ids)) and rule.complete


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


@pytest.mark.parametrize(("name", "as_tokens"), EACH)
def test_words_are_words_and_ruins_are_told(name, as_tokens):
    dialect, rng = dialect_of(name, as_tokens=as_tokens), random.Random(4)
    _, _, one, _ = FAMILIES[name]
    for _ in range(30):
        assert read(dialect, f'Hello, {{"x": 1}} you{END}', rng) == [TextDelta('Hello, {"x": 1} you')]
    if name != "llama":
        assert merged([e for e in read(dialect, f"Well. {one}", rng) if isinstance(e, TextDelta)]) == [
            TextDelta("Well. ")
        ]
    half = one[: one.index("1")]
    events = read(dialect, half, rng)
    assert isinstance(events[-1], Invalid)
    assert events[-1].unfinished
    assert called(events) == []
    broken = read(dialect, one.replace('{"a": 1}', '{"a": }'), rng)
    assert [event for event in broken if isinstance(event, Invalid)] != []
    assert called(broken) == []


def test_thoughts_are_no_answer():
    for as_tokens in (True, False):
        marks = ("<think>", "</think>") if as_tokens else ()
        source = "tools <tool_call> <think> enable_thinking"
        dialect = TemplateDialect(source, frozenset({END, *marks}), (END,))
        assert dialect.thinks
        events = read(dialect, f"<think>\nHm.\n</think>\n\nYes.{END}", random.Random(5))
        assert events == [ThoughtDelta("Hm.\n"), TextDelta("Yes.")]
        inside = dialect.parser(in_thought=True)
        told = [event for part in pieces("Hm.</think>Yes.", dialect.control) for event in inside.feed(*part)]
        assert merged(told + inside.finish()) == [ThoughtDelta("Hm."), TextDelta("Yes.")]
        if as_tokens:
            grammar = json_grammar({"const": 1}, dialect=dialect, thoughts="may")
            assert takes(grammar, dialect, "<think>\nHm.</think>1")
            assert takes(grammar, dialect, "1")


def test_a_template_without_tools_has_them_in_words():
    dialect = TemplateDialect("{{ messages }}", frozenset({END}), (END,))
    assert dialect.form is None
    text = '```tool_call\n{"name": "add", "parameters": {"a": 1}}\n```'
    assert takes(grammar_for([ADD], "any", True, dialect), dialect, text)
    assert called(read(dialect, text)) == [{"a": 1}]


def test_names_that_cannot_be_written_are_refused():
    form = form_of("tools [TOOL_CALLS] [ARGS]")
    form.check_name("do it")
    with pytest.raises(InputError, match="without brackets"):
        form.check_name("a[0]")
