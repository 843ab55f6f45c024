"""What an answer is held to: calls that are valid, JSON of a schema, or no calls at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_gemma_jax.dialects import (
    Dialect,
    ModelFacts,
    RenderedPrompt,
    Tool,
    dialect_for,
    grammar_for,
    json_grammar,
)
from langchain_gemma_jax.dialects.turn_grammar import Thoughts

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.asking.answer_format import AnswerFormat
    from langchain_gemma_jax.chat.asking.options import Options
    from langchain_gemma_jax.grammar.nodes import Grammar

_EACH_WRITING = ("gemma", "gemma4")  # calls as JSON, and natively: what can be promised differs a little
_GENERAL = ("auto", "any", "none")


def grammar_of(options: Options, dialect: Dialect, prompt: RenderedPrompt) -> Grammar | None:
    """Return the grammar that a call's answer is held to. None: the answer is free."""
    answer, tools = options.answer, options.tools
    thoughts: Thoughts = "none"
    if dialect.thought is not None and (options.thinking or prompt.in_thought):
        thoughts = "inside" if prompt.in_thought else "may"
    lenient = options.lenient or (answer is not None and answer.lenient)
    schema = None if answer is None else answer.schema
    if tools and not (options.choice == "none" and schema is not None):
        return grammar_for(
            tools,
            options.choice,
            options.parallel_tool_calls,
            dialect,
            answer=schema,
            thoughts=thoughts,
            lenient=lenient,
        )
    if schema is not None:
        return json_grammar(schema, dialect=dialect, thoughts=thoughts, lenient=lenient)
    # No tools, so no calls: where a control token opens them, it is not to come. Elsewhere they are words like others.
    return grammar_for((), "none", True, dialect) if dialect.opener_is_control else None


def check_tools(tools: Sequence[Tool], choice: str, dialect: str | None, *, lenient: bool) -> None:
    """See, without a model, that calls of these tools can be promised.

    Raises:
        SchemaError: calls cannot be promised; it says what, and where. InputError: a name cannot be written.
    """
    alone = len({tool.name for tool in tools}) < len(
        tools
    )  # of two with one name neither can be called, which is said then
    asked = [tool for tool in tools if choice in {tool.name, *_GENERAL}]
    for group in [[tool] for tool in asked] if alone else [tools] if tools else []:
        for name in _EACH_WRITING if dialect is None else (dialect,):
            spoken = dialect_for(ModelFacts("", ()), name)
            grammar_for(group, "auto" if choice == "none" else choice, True, spoken, lenient=lenient)


def check_answer(answer: AnswerFormat | None) -> None:
    """See, without a model, that answers of this form can be promised.

    Raises:
        SchemaError: such answers cannot be promised.
    """
    if answer is not None:
        json_grammar(answer.schema, lenient=answer.lenient)
