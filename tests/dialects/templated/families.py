"""Each family's form of calls, and its grammar and parser."""

from __future__ import annotations

import re
from itertools import pairwise

from langchain_gemma_jax.dialects import CallEnd, TemplateDialect, Tool, merged
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from tests.dialects.templated.marked_vocabulary import END, vocabulary

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


ADD = Tool(
    "add",
    "",
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
)
