"""The fields that requests of Ollama's API share, as the options of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_gemma_jax.chat.asking.model_profile import profile_of
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.served_model import load
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import as_truth
from langchain_gemma_jax.server.ollama.notes import Notes
from langchain_gemma_jax.server.ollama.options import settings_of_options
from langchain_gemma_jax.settings.durations import seconds_of

SHARED = {
    "model", "format", "options", "stream", "keep_alive", "think", "logprobs", "top_logprobs", "truncate", "shift",
}  # fmt: skip
_EFFORTS = ("low", "medium", "high")
_FOR_EVER = 2**31 - 1.0  # seconds


def options_in(body: Mapping[str, Any], model: str, caller: Caller, notes: Notes, **more: Any) -> Options:
    """Return the options of a call. ``more``: settings that one path alone has.

    Raises:
        InputError: a field's value is not possible.
    """
    given = {"model": model, **settings_of_options(body.get("options"), notes), **more}
    given["keep_alive"] = keep_alive_in(body, caller, notes)
    given["thinking"] = _thinks(body.get("think"), model, notes)
    given["response_format"] = _format(body.get("format"))
    for name in ("logprobs", "top_logprobs"):
        given[name] = body.get(name)
    if as_truth(body.get("shift"), "shift") or as_truth(body.get("truncate"), "truncate"):
        notes.add("shift and truncate have no effect: what is longer than the context is refused, and nothing is cut.")
    return caller.options(given)


def streams(body: Mapping[str, Any]) -> bool:
    """Return True if an answer is wanted line by line, as it is unless the request says otherwise.

    Raises:
        InputError: the field is neither true nor false.
    """
    return body.get("stream") is None or as_truth(body["stream"], "stream")


def keep_alive_in(body: Mapping[str, Any], caller: Caller, notes: Notes) -> float | None:
    """Return for how many seconds the model is to stay in memory; None where the request, or its caller, has no say.

    Raises:
        InputError: it is no duration.
    """
    if (value := body.get("keep_alive")) is None:
        return None
    seconds = seconds_of(value, "keep_alive")
    if not caller.models.others:
        notes.add("keep_alive has no effect: the operator of this server decides how long its models stay in memory.")
        return None
    return seconds if seconds >= 0 else _FOR_EVER


def load_or_leave(model: str, how: HowToLoad, keep_alive: float | None, clock: Clock) -> str:
    """Load a model, or have it leave memory where ``keep_alive`` is 0. Returns Ollama's word for what was done."""
    from langchain_gemma_jax.engine.api.process import engine

    if keep_alive != 0:
        load(model, how, keep_alive, clock)
        return "load"
    status = engine().status(model, **how.arguments())
    if status is not None and status.resident:
        engine().evict(load(model, how, None, clock))
    return "unload"


def _thinks(value: object, model: str, notes: Notes) -> bool:
    if value is not None and not isinstance(value, bool) and value not in _EFFORTS:
        raise InputError(f"think: expected true, false or one of {', '.join(_EFFORTS)}; found {value!r:.60}.")
    if value and profile_of(model).get("reasoning_output") is False:
        notes.add("think has no effect: this model was not taught to think.")
    return bool(value)


def _format(value: object) -> dict[str, Any] | None:
    if value is None or value == "":
        return None
    if value == "json":
        return {"type": "json_object"}
    if isinstance(value, dict):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": value}}
    raise InputError(f"format: expected 'json' or a JSON Schema, found {value!r:.60}.")
