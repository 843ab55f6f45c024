"""The common parts of OpenAI's two APIs: errors, settings, tools, events of a stream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from langchain_gemma_jax.engine.base.sampling_options import MAX_LOGIT_BIASES
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.fields import MOST_TOOLS, as_list, as_object, as_text
from langchain_gemma_jax.server.http.problems import Problem
from langchain_gemma_jax.settings.table import SAMPLED

_encoded = json.JSONEncoder(separators=(",", ":")).encode  # made once: json.dumps makes one for each chunk

EVENTS = "text/event-stream; charset=utf-8"

AS_THEY_ARE = tuple(name for name in SAMPLED if name not in {"logit_bias", "stop", "max_tokens", "logprobs"})
NO_EFFECT = (  # on a server that stores nothing, sends no bills and has one tier
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
    "verbosity", "stream_options", "include",
)  # fmt: skip
_KINDS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def openai_error(problem: Problem) -> dict[str, Any]:
    """Return an error in the form of OpenAI's APIs."""
    kind = _KINDS.get(problem.status, "invalid_request_error" if problem.status < 500 else "server_error")
    return {"message": problem.message, "type": kind, "param": None, "code": problem.code}


class OpenAIForm:
    """Errors in the form of OpenAI's APIs."""

    def body(self, problem: Problem) -> dict[str, Any]:
        """Return the body of a response that is an error."""
        return {"error": openai_error(problem)}

    def in_stream(self, problem: Problem) -> bytes:
        """Return the last event of a stream that broke off."""
        return data_event(self.body(problem))


def data_event(value: Mapping[str, Any]) -> bytes:
    """Return an event without a name, for a stream."""
    return b"data: " + _encoded(value).encode() + b"\n\n"


def named_event(name: str, value: Mapping[str, Any]) -> bytes:
    """Return an event with a name, for a stream."""
    return b"event: " + name.encode() + b"\n" + data_event(value)


def new_id(kind: str) -> str:
    """Return a new, unique id."""
    return f"{kind}{uuid.uuid4().hex}"


def sampling_settings(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling settings of a request, by this package's names.

    Raises:
        InputError: ``logit_bias`` is too long, or has keys that are no ids of tokens.
    """
    found = {name: body[name] for name in AS_THEY_ARE if body.get(name) is not None}
    if (bias := body.get("logit_bias")) is not None:
        pairs = as_object(bias, "logit_bias")
        if len(pairs) > MAX_LOGIT_BIASES:
            raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES}, found {len(pairs)}.")
        if not all(token.isdecimal() and len(token) < 10 for token in pairs):
            raise InputError("logit_bias: expected the ids of tokens as its names.")
        found["logit_bias"] = {int(token): each for token, each in pairs.items()}
    return found


def thinks(effort: object, where: str) -> bool:
    """Return True if a reasoning effort asks for thoughts.

    Raises:
        InputError: ``effort`` is none of OpenAI's efforts.
    """
    known = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    if effort is not None and effort not in known:
        raise InputError(f"{where}: expected one of {', '.join(known)}; found {effort!r:.60}.")
    return effort not in (None, "none", "minimal")


def checked_functions(tools: object, *, flat: bool) -> list[dict[str, Any]]:
    """Return the tools of a request in one form. ``flat``: their fields are in the tool itself, not in ``function``.

    Raises:
        InputError: one is no function, such as a tool that OpenAI's servers run, or has no name.
    """
    found = []
    for number, each in enumerate(as_list(tools, "tools", MOST_TOOLS)):
        tool = as_object(each, f"tools[{number}]")
        if tool.get("type") != "function":
            raise InputError(
                f"tools[{number}]: expected a tool of type 'function', found {tool.get('type')!r:.60}: this server "
                "runs no tools itself."
            )
        function = tool if flat else as_object(tool.get("function"), f"tools[{number}].function")
        as_text(function.get("name"), f"tools[{number}]: name")
        kept: dict[str, Any] = {
            name: function[name] for name in ("name", "description", "parameters", "strict") if name in function
        }
        kept |= {name: value for name, value in (("description", ""), ("parameters", {})) if kept.get(name) is None}
        found.append({"type": "function", "function": kept})
    return found
