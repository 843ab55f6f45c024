"""Tools as LangChain's users give them, and whether the model may call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias, cast

from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_gemma_jax.dialects import Json, Tool
from langchain_gemma_jax.errors import InputError

ToolLike: TypeAlias = Any  # whatever convert_to_openai_tool takes: functions, classes, tools, dicts of several forms


class Choice(StrEnum):
    """Whether the model calls tools."""

    AUTO = "auto"  # as it likes
    NONE = "none"  # it may not; their declarations stay in the prompt


def openai_tools(tools: Iterable[ToolLike], *, strict: bool | None = None) -> list[dict[str, Any]]:
    """Tools of any form in OpenAI's, which every other form can be turned into.

    Raises:
        InputError: one is of no form that is known.
    """
    return [_openai_tool(number, tool, strict) for number, tool in enumerate(tools)]


def checked_tools(tools: object) -> tuple[Tool, ...]:
    """Tools of any form as chat formats take them.

    Raises:
        InputError: one is of no form that is known, or two have the same name.
    """
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise InputError(f"tools: expected a list of tools, found {tools!r}.")
    found: dict[str, Tool] = {}
    for number, tool in enumerate(tools):
        declared = _declared(number, tool)
        if declared.name in found:
            raise InputError(f"tools[{number}]: a tool before it is called {declared.name!r} too. Names are unique.")
        found[declared.name] = declared
    return tuple(found.values())


def plain_choice(choice: object, names: Sequence[str]) -> str:
    """A choice in one form: "auto", "any", "none", or a tool's name.

    Raises:
        InputError: it is none of these.
    """
    name: object = choice
    if isinstance(choice, Mapping):  # {"type": "function", "function": {"name": …}}, {"type": "tool", "name": …}, …
        function = choice.get("function")
        name = (function.get("name") if isinstance(function, Mapping) else choice.get("name")) or choice.get("type")
    if name is None or name is False:
        return "auto"
    if name is True or name in ("any", "required"):
        if not names:
            raise InputError(f"tool_choice={choice!r}: there are no tools to choose from.")
        return "any"
    if name in ("auto", "none") or name in names:
        return cast("str", name)
    known = f", or a tool's name: {', '.join(names)}" if names else ", and there are no tools"
    raise InputError(f"tool_choice: expected 'auto', 'any', 'required' or 'none'{known}; found {choice!r}.")


def checked_choice(choice: object, names: Sequence[str]) -> Choice:
    """Whether tools may be called, in any of the forms that LangChain's users know.

    Raises:
        InputError: it is none of them, or cannot be promised.
    """
    wanted = plain_choice(choice, names)
    if wanted in ("auto", "none"):
        return Choice(wanted)
    raise InputError(
        f"tool_choice={choice!r}: a call cannot be forced yet, since answers are not held to a grammar. 'auto' leaves "
        "it to the model and 'none' forbids it."
    )


def refuse_response_format(response_format: object) -> None:
    """Answers of a given form are not there yet."""
    if response_format is not None:
        raise InputError(
            "response_format: an answer cannot be held to a schema yet. Ask for JSON in the prompt, or let the model "
            "call a tool with that schema."
        )


def _declared(number: int, tool: ToolLike) -> Tool:
    return Tool.of(cast("Mapping[str, Json]", _openai_tool(number, tool)))


def _openai_tool(number: int, tool: ToolLike, strict: bool | None = None) -> dict[str, Any]:  # noqa: FBT001  LangChain's word
    try:
        form = convert_to_openai_tool(tool, strict=strict)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"tools[{number}]: {error}") from error
    if form.get("type") != "function":
        raise InputError(
            f"tools[{number}]: {form.get('type')!r} is a tool that another company's server runs. Use one that runs "
            "here: a function, a LangChain tool, or a schema."
        )
    Tool.of(form)  # which says what is wrong with it
    return form
