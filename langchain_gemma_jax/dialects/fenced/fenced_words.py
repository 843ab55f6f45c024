"""Tools in plain text, for models without a notation for calls: declarations, calls and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from langchain_gemma_jax.dialects.conversation.messages import Tool, ToolCall, ToolResult
from langchain_gemma_jax.dialects.fenced.fence_parser import CLOSER, OPENER
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.grammar.json_value import Json

_HOW_TO_CALL = f"""You can use the tools below. To use one, write its name and its parameters as one line of JSON, in \
a block like this:
{OPENER}{{"name": "the tool's name", "parameters": {{"a parameter's name": "its value"}}}}
{CLOSER}
To use several at once, write several lines. Then stop: the results come to you in a block like it, and you go on from \
there. Use tools where they help, and answer in plain words otherwise.
The tools, one a line:"""

_MORE = "More tools that you can use now, in the same way, one a line:"


def declared(tools: Sequence[Tool]) -> str:
    """Return the instructions for a model: the tools that it may call, and the form of a call."""
    return "\n".join([_HOW_TO_CALL, *map(_declaration, tools)])


def called(words: str, calls: Sequence[ToolCall]) -> str:
    """Return an answer that calls tools, as the model wrote it."""
    lines = [_json({"name": call.name, "parameters": call.arguments}) for call in calls]
    return "\n".join([*([words] if words else []), _block("tool_call", lines)])


def answered(results: Sequence[tuple[str, ToolResult]]) -> str:
    """Return the text of the results of calls, with the names of their tools, and the tools that they declare."""
    found = [tool for _, result in results for tool in result.declares]
    more = [_MORE, *map(_declaration, found)] if found else []
    return "\n".join([_block("tool_result", [_result(*each) for each in results]), *more])


def _block(kind: str, lines: Sequence[str]) -> str:
    # JSON on one line has no line ends, so nothing in it can close the block.
    return "\n".join([f"```{kind}", *lines, CLOSER])


def _result(name: str, result: ToolResult) -> str:
    return _json({"name": name, "error" if result.is_error else "result": result.value})


def _declaration(tool: Tool) -> str:
    return _json({"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}})


def _json(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"Tools, arguments and results are JSON values, and one of these is none: {error}.") from error


def _plain(value: object) -> object:
    """Return a mapping as a ``dict``, the only kind that ``json`` can write."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")
