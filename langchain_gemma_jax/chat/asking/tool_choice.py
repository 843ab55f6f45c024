"""Tools as LangChain's users give them, and the choice of those that the model may call."""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, Self, TypeAlias, cast

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from langchain_gemma_jax.chat.asking.schemas import recursive_schema, schema_by_pydantic
from langchain_gemma_jax.chat.asking.tight_types import standing_for, tight_schema, with_tight_members
from langchain_gemma_jax.chat.asking.tool_index import ToolIndex
from langchain_gemma_jax.chat.history.searches import SEARCH
from langchain_gemma_jax.dialects import Tool
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.nodes import Grammar
from langchain_gemma_jax.grammar.schema.schema_facts import KINDS
from langchain_gemma_jax.stopping import looking

ToolLike: TypeAlias = Any  # whatever convert_to_openai_tool takes: functions, classes, tools, dicts of several forms

MOST_OF_A_NAME = 256  # characters
_OF_TOOLS = {"function", "custom"}  # what OpenAI and Anthropic call a tool that the caller runs
_DECLARING = {"input_schema", "parameters", "properties", "function"}  # keys that a server's own tool does not have
_NOT_OF_PARAMETERS = ("title", "description")  # but of the function


class BoundTools(tuple[Tool, ...]):  # noqa: SLOT001  a tuple has no room for slots
    """Tools as chat formats take them, the grammars that were made of them, and what finds the deferred ones.

    All of it is made once for each binding.

    Only the model that they are bound to has them, so the time of a call says nothing of another caller's.
    """

    grammars: dict[object, Grammar]
    deferred: tuple[Tool, ...]

    def __new__(cls, tools: Iterable[Tool] = ()) -> Self:
        made = super().__new__(cls, tools)
        made.grammars = {}
        made.deferred = tuple(tool for tool in made if tool.deferred)
        return made

    @cached_property
    def searched(self) -> ToolIndex:
        """The deferred tools, by the words that describe them."""
        return ToolIndex(self.deferred)


class FormedTools(list[dict[str, Any]]):
    """Tools in OpenAI's form, as they are bound to a model; with the ones that chat formats take."""

    def __init__(self, pairs: Iterable[tuple[dict[str, Any], Tool]]) -> None:
        forms, tools = zip(*pairs, strict=True) if (pairs := tuple(pairs)) else ((), ())
        self._forms, self._tools = forms, BoundTools(tools)
        super().__init__(forms)

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[dict[str, Any]]]]:
        return list, (list(self),)  # a copy may be changed

    @property
    def tools(self) -> BoundTools | None:
        """The tools as chat formats take them. None: the list was changed."""
        return self._tools if len(self) == len(self._forms) and all(map(operator.is_, self, self._forms)) else None


def openai_tools(tools: Iterable[ToolLike], *, strict: bool | None = None) -> FormedTools:
    """Return tools of any form in OpenAI's, which every other form can be turned into.

    Raises:
        InputError: a tool is of no form that is known, its name is not possible, or two that differ have the same.
    """
    if isinstance(tools, str | Mapping) or not isinstance(tools, Iterable):
        raise InputError(
            f"tools: expected a list of functions, LangChain tools or schemas; found {tools!r:.200}. One alone is put "
            "into a list, and a function is given itself and not by its name: bind_tools([convert])."
        )
    asked = [(number, tool) for number, tool in enumerate(looking(tools, 16)) if not _is_search(tool)]
    found = _different(_openai_tool(number, tool, strict) for number, tool in asked)
    bound = found.tools or BoundTools()
    if bound.deferred and any(tool.name == SEARCH for tool in bound):
        raise InputError(
            f"tools: {SEARCH!r} is the tool by which a model finds those that are deferred. Give yours another name."
        )
    return found


def checked_tools(tools: object) -> BoundTools:
    """Return tools of any form as chat formats take them.

    Raises:
        InputError: a tool is of no form that is known, or two tools have the same name.
    """
    known = tools.tools if isinstance(tools, FormedTools) else None
    return openai_tools(cast("Iterable[ToolLike]", tools)).tools or BoundTools() if known is None else known


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


def strictness(tools: Iterable[ToolLike], default: bool | None = None) -> bool | None:  # noqa: FBT001  LangChain's word
    """Return how much of what the tools' schemas ask has to be promised.

    True: all of it. False: what can be, and the rest is left out. None: what can be, and the rest is checked when a
    call is there. A tool says so itself with ``strict``; ``default`` is for those that do not.
    """
    wishes = [default if (own := own_strictness(tool)) is None else own for tool in tools]
    if False in wishes:
        return False
    return True if wishes and all(wishes) else None


def own_strictness(tool: ToolLike) -> bool | None:
    """Return the ``strict`` of a tool in OpenAI's form; None if it has none."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    strict = function.get("strict") if isinstance(function, Mapping) else None
    return strict if isinstance(strict, bool) else None


def _different(pairs: Iterable[tuple[dict[str, Any], Tool]]) -> FormedTools:
    """Return tools without those that are the same as one before.

    Raises:
        InputError: two tools have one name, and are not the same.
    """
    found: dict[str, tuple[dict[str, Any], Tool]] = {}
    for number, (form, tool) in enumerate(pairs):
        before, _ = found.setdefault(tool.name, (form, tool))
        if before is not form and _without_titles(before) != _without_titles(form):
            raise InputError(f"tools[{number}]: a tool before it is called {tool.name!r} too. Names are unique.")
    return FormedTools(found.values())


def _without_titles(value: object) -> object:
    """Return a schema without the titles that pydantic gives, which say nothing."""
    if isinstance(value, Mapping):
        return {
            name: _without_titles(each) for name, each in value.items() if name != "title" or not isinstance(each, str)
        }
    return [_without_titles(each) for each in value] if isinstance(value, list | tuple) else value


def _tightened(schema: object, parameters: Mapping[str, Any], tight: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as narrow as their types: all of a class of pydantic, or the members of a function."""
    if isinstance(schema, type) and issubclass(schema, BaseModel) and set(parameters) >= {"properties"}:
        whole = convert_to_openai_tool(standing_for(schema, tight))["function"]["parameters"]
        if set(whole.get("properties", ())) == set(parameters["properties"]):  # nothing is injected
            return cast("dict[str, Any]", whole)
    return with_tight_members(parameters, tight)


def _is_search(tool: ToolLike) -> bool:
    """Return True for the search tools of other companies, which stand for the one that deferred tools bring along."""
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    return isinstance(kind, str) and kind.startswith(SEARCH) and not _DECLARING & set(tool)


def _deferral(number: int, tool: ToolLike) -> bool:
    """Return True if a tool is declared only once it was found: LangChain's ``extras``, or a field of a dictionary.

    Raises:
        InputError: it says something else than True or False.
    """
    extras = tool if isinstance(tool, Mapping) else getattr(tool, "extras", None)
    if not isinstance(extras, Mapping):
        return False
    inner = extras.get("function")
    deferred = extras.get("defer_loading", inner.get("defer_loading") if isinstance(inner, Mapping) else None)
    if deferred is not None and not isinstance(deferred, bool):
        raise InputError(f"tools[{number}]: defer_loading: expected True or False, found {deferred!r:.100}.")
    return bool(deferred)


def _refuse_names(number: int, tool: ToolLike) -> None:
    """Refuse a name in place of a tool. LangChain's own error for it is long and of no help."""
    if tool is None or isinstance(tool, str | bytes | int | float):
        raise InputError(
            f"tools[{number}]: expected a function, a LangChain tool or a schema; found {tool!r:.200}. Give the "
            "function itself, and not its name."
        )
    if isinstance(tool, type) and issubclass(tool, Enum):
        raise InputError(
            f"tools[{number}]: expected a function, a LangChain tool or a schema of an object; found {tool!r}, whose "
            "values are none. Give it to a parameter of a function; or to with_structured_output, where "
            'method="json_schema" gives one of its members.'
        )


def _refuse_foreign(number: int, tool: ToolLike) -> None:
    """Refuse what another company's server runs, in the forms of OpenAI and Anthropic."""
    if not isinstance(tool, Mapping) or not isinstance(kind := tool.get("type"), str) or kind in _OF_TOOLS:
        return
    if kind not in KINDS and not _DECLARING & set(tool):
        raise InputError(
            f"tools[{number}]: {kind!r} is a tool that another company's server runs. Use one that runs "
            "here: a function, a LangChain tool, or a schema."
        )


def _refuse_name(number: int, name: str) -> None:
    if len(name) > MOST_OF_A_NAME or any(unicodedata.category(mark)[0] == "C" for mark in name):
        raise InputError(
            f"tools[{number}]: expected a name of at most {MOST_OF_A_NAME} characters, none of them invisible; "
            f"found {name[:60]!r}."
        )


def _openai_tool(number: int, tool: ToolLike, strict: bool | None) -> tuple[dict[str, Any], Tool]:  # noqa: FBT001  LangChain's word
    _refuse_names(number, tool)
    _refuse_foreign(number, tool)
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
    if not isinstance(tool, Mapping) and (tight := tight_schema(schema)) is not None:
        form["function"]["parameters"] = _tightened(schema, form["function"]["parameters"], tight)
    if (full := recursive_schema(schema)) is not None:
        form["function"]["parameters"] = {name: value for name, value in full.items() if name not in _NOT_OF_PARAMETERS}
    if _deferral(number, tool):
        form = {**form, "defer_loading": True}
    made = Tool.of(form)
    _refuse_name(number, made.name)
    return form, made
