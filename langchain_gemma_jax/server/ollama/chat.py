"""Ollama's ``/api/chat``: answers to conversations, line by line or whole."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from functools import partial
from typing import Any

from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import refuse_unknown
from langchain_gemma_jax.server.apis.openai_parts import checked_functions
from langchain_gemma_jax.server.ollama.answers import Answering, as_message, streamed, whole
from langchain_gemma_jax.server.ollama.asking import SHARED, keep_alive_in, load_or_leave, options_in, streams
from langchain_gemma_jax.server.ollama.forms import LINES, line
from langchain_gemma_jax.server.ollama.messages import ollama_messages
from langchain_gemma_jax.server.ollama.names import meant, name_in
from langchain_gemma_jax.server.ollama.notes import Notes

_KNOWN = {*SHARED, "messages", "tools"}


class OllamaChat:
    """Answers to conversations, by ``/api/chat``."""

    streams_as = LINES

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or line by line.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnknownModelError: the model is not served.
        """
        refuse_unknown(body, _KNOWN)
        notes, name = Notes(), name_in(body)
        answering = Answering(name, as_message, notes, caller.clock)
        model, wants_lines = meant(caller.models, name), streams(body)
        if not body.get("messages"):
            loading = loaded(model, keep_alive_in(body, caller, notes), answering, caller)
            return one_line(loading) if wants_lines else loading
        tools = checked_functions(body["tools"], flat=False) if body.get("tools") else None
        begun = caller.begin(ollama_messages(body["messages"]), options_in(body, model, caller, notes, tools=tools))
        return (streamed if wants_lines else whole)(begun, answering)


async def loaded(model: str, keep_alive: float | None, answering: Answering, caller: Caller) -> dict[str, Any]:
    """Load a model, or have it leave, and return the answer that says so."""
    clock = answering.clock
    how = caller.models.how
    return answering.loaded(await abegin(partial(load_or_leave, model, how, keep_alive, clock), clock))


async def one_line(answer: Awaitable[dict[str, Any]]) -> AsyncGenerator[bytes, None]:
    """Yield a whole answer as the one line of a stream."""
    yield line(await answer)
