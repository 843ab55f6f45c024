"""Tools as LangChain's users give them, and whether the model may call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_gemma_jax.chat.asking.schemas import recursive_schema, schema_by_pydantic
from langchain_gemma_jax.dialects import Json, Tool
from langchain_gemma_jax.errors import InputError

ToolLike: TypeAlias = Any  # whatever convert_to_openai_tool takes: functions, classes, tools, dicts of several forms

_NOT_OF_PARAMETERS = ("title", "description")  # but of the function


def openai_tools(tools: Iterable[ToolLike], *, strict: bool | None = None) -> list[dict[str, Any]]:
    """Return tools of any form in OpenAI's, which every other form can be turned into.

    Raises:
        InputError: a tool is of no form that is known.
    """
    return [_openai_tool(number, tool, strict) for number, tool in enumerate(tools)]


def checked_tools(tools: object) -> tuple[Tool, ...]:
    """Return tools of any form as chat formats take them.

    Raises:
        InputError: a tool is of no form that is known, or two tools have the same name.
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
    """Return the choice of a tool in one form: "auto", "any", "none", or a tool's name.

    Raises:
        InputError: the choice is none of these.
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


def lenient_tools(tools: Iterable[ToolLike]) -> bool:
    """Whether a tool says itself, with ``strict=False``, that its arguments need not be promised to be valid."""
    functions = (tool.get("function") for tool in tools if isinstance(tool, Mapping))
    return any(isinstance(function, Mapping) and function.get("strict") is False for function in functions)


def _declared(number: int, tool: ToolLike) -> Tool:
    return Tool.of(cast("Mapping[str, Json]", _openai_tool(number, tool)))


def _openai_tool(number: int, tool: ToolLike, strict: bool | None = None) -> dict[str, Any]:  # noqa: FBT001  LangChain's word
    try:
        form = convert_to_openai_tool(tool, strict=strict)
    except (ValueError, TypeError, KeyError) as error:
        if (found := schema_by_pydantic(tool)) is None:
            raise InputError(f"tools[{number}]: {error}") from error
        form = convert_to_openai_tool({"description": ""} | dict(found), strict=strict)
    if form.get("type") != "function":
        raise InputError(
            f"tools[{number}]: {form.get('type')!r} is a tool that another company's server runs. Use one that runs "
            "here: a function, a LangChain tool, or a schema."
        )
    schema = getattr(tool, "args_schema", tool)
    if (full := recursive_schema(schema)) is not None:
        form["function"]["parameters"] = {name: value for name, value in full.items() if name not in _NOT_OF_PARAMETERS}
    Tool.of(form)  # which says what is wrong with it
    return form
