"""The grammar that an answer is held to: calls that are valid, JSON of a schema, or no calls at all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_gemma_jax.chat.asking.tool_choice import BoundTools, own_strictness, strictness
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
from langchain_gemma_jax.engine.host.users_line import users_line
from langchain_gemma_jax.grammar.reading import prepare

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.asking.answer_format import AnswerFormat
    from langchain_gemma_jax.chat.asking.options import Options
    from langchain_gemma_jax.grammar.nodes import Grammar

_EACH_WRITING = ("gemma", "gemma4")  # calls as JSON, and natively: what can be promised differs a little
_GENERAL = ("auto", "any", "none")
_SHOWN = 5  # of what cannot be promised

MOST_GRAMMARS = 64  # that are kept for a binding of tools

prepare()  # now: it reads files, and tools are bound in event loops too


class UnpromisedWarning(UserWarning):
    """A tool's schema asks something that is checked when a call is there, as no grammar can promise it."""


def grammar_of(
    options: Options, dialect: Dialect, prompt: RenderedPrompt, tools: Sequence[Tool] | None = None
) -> Grammar | None:
    """Return the grammar that a call's answer is held to. None: the answer is free.

    ``tools``: those that can be called now. None: all of the options'.
    """
    answer, tools = options.answer, options.tools if tools is None else tools
    bound = options.tools
    thoughts: Thoughts = "none"
    if dialect.thought is not None and (options.thinking or prompt.in_thought):
        thoughts = "inside" if prompt.in_thought else "may"
    lenient = options.strict is not True or (answer is not None and answer.lenient)
    schema = None if answer is None else answer.schema
    if tools and not (options.choice == "none" and schema is not None):
        make = partial(
            grammar_for,
            tools,
            options.choice,
            options.parallel_tool_calls,
            dialect,
            answer=schema,
            thoughts=thoughts,
            lenient=lenient,
        )
        if schema is None and isinstance(bound, BoundTools):
            names = None if tools is bound else tuple(tool.name for tool in tools)
            key = options.choice, options.parallel_tool_calls, repr(dialect), thoughts, lenient, names
            if (known := bound.grammars.get(key)) is None:
                if len(bound.grammars) >= MOST_GRAMMARS:  # of tools that are found in ever new combinations
                    bound.grammars.clear()
                known = bound.grammars.setdefault(key, make())
            grammar = known
        else:
            grammar = make()
        if any(each.startswith("#") for each in grammar.unpromised):  # of the answer, and of no tool
            check_answer(answer)
        return grammar
    if schema is not None:
        return json_grammar(schema, dialect=dialect, thoughts=thoughts, lenient=answer is not None and answer.lenient)
    # No tools, so no calls: where a control token opens them, it is not to come. Elsewhere they are words like others.
    return grammar_for((), "none", True, dialect) if dialect.opener_is_control else None


def check_bound(forms: Sequence[Mapping[str, Any]], tools: Sequence[Tool], choice: str, dialect: str | None) -> None:
    """Check, without a model, that calls of tools can be promised; warn of what cannot be.

    ``forms``: the same tools in OpenAI's form, which say how strict they are.

    Raises:
        SchemaError: a tool is strict, and calls of it cannot be promised. InputError: a name cannot be written.
    """
    demanding = [tool for form, tool in zip(forms, tools, strict=True) if own_strictness(form)]
    check_tools(demanding, "auto", dialect, lenient=False)
    strict = strictness(forms)
    unpromised = check_tools(tools, choice, dialect, lenient=strict is not True)
    if unpromised and strict is None:
        shown = "; ".join(unpromised[:_SHOWN]) + (
            f"; and {more} more" if (more := len(unpromised) - _SHOWN) > 0 else ""
        )
        warnings.warn(
            f"A grammar cannot promise all that the tools ask: {shown}. A call that is not as they ask is made an "
            "invalid_tool_call when it is there. strict=True raises instead, strict=False does not look.",
            UnpromisedWarning,
            stacklevel=users_line(),
        )


def check_tools(tools: Sequence[Tool], choice: str, dialect: str | None, *, lenient: bool) -> tuple[str, ...]:
    """Check, without a model, that calls of these tools can be promised. Return what cannot be, if that is no error.

    Raises:
        SchemaError: calls cannot be promised. The message says what, and where. InputError: a name cannot be written.
    """
    found: dict[str, None] = {}
    asked = [tool for tool in tools if choice in {tool.name, *_GENERAL}]
    for name in _EACH_WRITING if dialect is None else (dialect,):
        spoken = dialect_for(ModelFacts("", ()), name)
        for tool in tools:
            spoken.calls.check_name(tool.name)
        if asked:
            grammar = grammar_for(asked, "auto" if choice == "none" else choice, True, spoken, lenient=lenient)
            found |= dict.fromkeys(grammar.unpromised)
    return tuple(found)


def check_answer(answer: AnswerFormat | None) -> None:
    """Check, without a model, that answers of this form can be promised.

    Raises:
        SchemaError: such answers cannot be promised.
    """
    if answer is not None:
        json_grammar(answer.schema, lenient=answer.lenient)
