"""``Offer``: the tools that are declared to a model, and those that it may call, at one point of a conversation.

Deferred tools are not declared at the beginning. The model has a tool that searches for them. What it finds is declared
behind the search, at the conversation's end, and may be called from there on. So the beginning of the prompt stays as
it was, with its keys and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from langchain_gemma_jax.chat.asking.tool_choice import BoundTools
from langchain_gemma_jax.chat.history.searches import SEARCH, found_by
from langchain_gemma_jax.dialects import Json, Message, Tool
from langchain_gemma_jax.errors import InputError

MOST_SEARCHES = 8  # one after the other: then a model has to do with what it found

MOST_LISTED = 32  # names of deferred tools that the search's declaration has


@dataclass(frozen=True)
class Offer:
    """Messages and tools as a prompt is made of them."""

    messages: Sequence[Message]
    """The conversation, in which the results of searches declare the tools that they found."""
    declared: tuple[Tool, ...]
    """Tools that are declared at the beginning."""
    callable: tuple[Tool, ...]
    """Tools that the model may call now."""
    unfound: frozenset[str] = frozenset()
    """Names of deferred tools that no search has found yet."""

    @classmethod
    def of(cls, tools: tuple[Tool, ...], choice: str, messages: Sequence[Message]) -> Offer:
        """Return what is offered. A deferred tool that ``choice`` names is declared as the others are.

        Raises:
            InputError: the model has to call a tool, and has none after all of its searches.
        """
        hidden = {tool.name: tool for tool in tools if tool.deferred and tool.name != choice}
        if not hidden:
            return cls(messages, tools, tools)
        plain = tuple(tool for tool in tools if tool.name not in hidden)
        shown = list(messages)
        found: dict[str, Tool] = {}
        for number, message in enumerate(messages):
            names = found_by(message)
            new = {name: hidden[name] for name in names or () if name in hidden and name not in found}
            if new and message.result is not None:
                shown[number] = replace(message, result=replace(message.result, declares=tuple(new.values())))
            found |= new
        search = search_tool(tuple(hidden))
        searched = sum(1 for _ in _last_searches(messages))
        searches = searched < MOST_SEARCHES and len(found) < len(hidden)
        callable_now = (*plain, *found.values(), *((search,) if searches else ()))
        if not callable_now and choice == "any":
            raise InputError(
                f"tool_choice='any': all tools are deferred, and {searched} searches found none. Say in the tools' "
                "descriptions what they do, or do not defer the ones that are needed."
            )
        return cls(shown, (*plain, search), callable_now, frozenset(hidden.keys() - found.keys()))


def search_tool(names: Sequence[str]) -> Tool:
    """Return the tool by which a model finds those that are deferred, by these names.

    A few names are listed, and the model chooses one of them. Of many it says in words what the tool should do.
    """
    query: dict[str, Json] = {"type": "string", "description": "A few words for what the tool should do, or its name."}
    if len(names) <= MOST_LISTED:
        query = {"type": "string", "description": "The tool's name.", "enum": list(names)}
    return Tool(
        SEARCH,
        f"Finds tools. {len(names)} more can be used whose parameters are not shown here. Find one before you say that "
        "you cannot do something. Those that are found can be called afterwards.",
        {"type": "object", "properties": {"query": query}, "required": ["query"], "additionalProperties": False},
    )


def as_bound(tools: tuple[Tool, ...]) -> BoundTools:
    """Return tools with what finds the deferred ones among them."""
    return tools if isinstance(tools, BoundTools) else BoundTools(tools)


def _last_searches(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the results of searches at the conversation's end, behind which nothing else was said."""
    for message in reversed(messages):
        if found_by(message) is not None:
            yield message
        elif not (message.calls and all(call.name == SEARCH for call in message.calls)):
            return
