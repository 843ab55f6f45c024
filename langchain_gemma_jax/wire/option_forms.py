"""One call's options as JSON, and back: checked again where they arrive."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from pydantic import SecretStr

from langchain_gemma_jax.chat.asking.answer_format import AnswerFormat
from langchain_gemma_jax.chat.asking.options import Options, options
from langchain_gemma_jax.engine.base.sampling_options import MAX_LOGIT_BIASES
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing import Route
from langchain_gemma_jax.settings.table import SETTINGS

_AS_IT_IS = "!#$&'()*+,/:;=?@[]~ "  # characters that a session's name keeps in its header
_LONGEST_SESSION = 256  # characters
_SENT = tuple(name for name, setting in SETTINGS.items() if setting.sent)
_TAKEN = {*_SENT, "tools", "tool_choice", "answer", "token"}


def options_out(asked: Options, *, local: bool) -> dict[str, Any]:
    """Return options in the form in which they are sent. ``local``: through a socket of this user's alone.

    Raises:
        InputError: a setting cannot be sent.
    """
    if asked.token is not None and not local:
        raise InputError(
            "token: a server fetches models from the Hub with a token of its own. It is sent through a Unix socket "
            "alone: leave it out, or give it to the server as HF_TOKEN."
        )
    found: dict[str, Any] = {name: getattr(asked, name) for name in _SENT}
    found |= {"route": _route(asked.route), "tool_choice": asked.choice}
    if asked.logit_bias is not None:  # JSON would turn the ids into texts
        found["logit_bias"] = [list(each) for each in asked.logit_bias.items()]
    found["tools"] = [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        | ({"defer_loading": True} if tool.deferred else {})
        for tool in asked.tools
    ]
    if asked.answer is not None:
        answer = asked.answer
        found["answer"] = {"schema": dict(answer.schema), "lenient": answer.lenient, "in_prompt": answer.in_prompt}
    if asked.token is not None:
        found["token"] = asked.token.get_secret_value()
    return {name: value for name, value in found.items() if value not in (None, [], "")}


def session_out(asked: Options) -> str | None:
    """Return the name of the call's session, in the form of a header; None if it has none."""
    if not asked.session:
        return None
    found = quote(asked.session.strip(), safe=_AS_IT_IS, errors="backslashreplace")
    if len(found) <= _LONGEST_SESSION:
        return found
    return hashlib.sha256(asked.session.encode("utf-8", "surrogatepass")).hexdigest()


MOST_TOOLS = 1000


def options_in(asked: object, stored: Mapping[str, object] | None = None) -> Options:
    """Return the options that were sent. ``stored``: the receiver's settings, for those that were not sent.

    Raises:
        InputError: ``asked`` has no options, or impossible ones.
    """
    if not isinstance(asked, Mapping) or not all(isinstance(name, str) for name in asked):
        raise InputError(f"options: expected an object, found {type(asked).__name__}.")
    if unknown := sorted(set(asked) - _TAKEN):
        raise InputError(f"options: there is none called {unknown[0]!r}. Are client and server of one version?")
    given = {name: value for name, value in asked.items() if name not in {"answer", "token", "tools", "logit_bias"}}
    if "logit_bias" in asked:
        given["logit_bias"] = _bias(asked["logit_bias"])
    tools = asked.get("tools", [])
    if not isinstance(tools, list):
        raise InputError(f"tools: expected a list, found {type(tools).__name__}.")
    if len(tools) > MOST_TOOLS:
        raise InputError(f"tools: expected at most {MOST_TOOLS}, found {len(tools)}.")
    found = options(
        dict.fromkeys(SETTINGS) if stored is None else stored, None, {**given, "tools": [_tool(each) for each in tools]}
    )
    token = asked.get("token")
    answer = _answer(asked["answer"]) if "answer" in asked else None
    return found.model_copy(update={"answer": answer, "token": SecretStr(token) if isinstance(token, str) else None})


def _route(route: Route | None) -> dict[str, str] | None:
    if route is None:
        return None
    plain = route.plain
    if isinstance(plain, Route):
        raise InputError(
            "route: a server takes models by name, and no policy, confidence or calibration of yours. Give the route "
            'as {"light": ..., "heavy": ...}, or choose before the call: model=...'
        )
    return plain


def _bias(pairs: object) -> dict[int, float]:
    if isinstance(pairs, list) and len(pairs) > MAX_LOGIT_BIASES:
        raise InputError(f"logit_bias: expected at most {MAX_LOGIT_BIASES}, found {len(pairs)}.")
    if not isinstance(pairs, list) or not all(isinstance(each, list) and len(each) == 2 for each in pairs):
        raise InputError("logit_bias: expected a list of pairs of a token's id and a number.")
    if not all(isinstance(token, int) for token, _ in pairs):
        raise InputError("logit_bias: expected token ids that are whole numbers.")
    return dict(pairs)


def _tool(declared: object) -> dict[str, Any]:
    if not isinstance(declared, dict):
        raise InputError(f"tools: expected objects, found {type(declared).__name__}.")
    return {"type": "function", "function": declared}


def _answer(asked: object) -> AnswerFormat:
    if not isinstance(asked, dict) or not isinstance(asked.get("schema"), dict):
        raise InputError("answer: expected an object with a schema.")
    return AnswerFormat(asked["schema"], lenient=asked.get("lenient") is True, in_prompt=asked.get("in_prompt") is True)
