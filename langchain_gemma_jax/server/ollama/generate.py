"""Ollama's ``/api/generate``: an answer to one prompt, or, with ``raw`` or ``suffix``, more of a text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.continued_text import ContinuedText
from langchain_gemma_jax.server.apis.fields import as_text, as_truth, refuse_unknown
from langchain_gemma_jax.server.ollama.answers import (
    AnswerContent,
    Answering,
    EngineTimes,
    TokenCounts,
    as_response,
    streamed,
    whole,
)
from langchain_gemma_jax.server.ollama.asking import SHARED, keep_alive_in, options_in, streams
from langchain_gemma_jax.server.ollama.chat import loaded, one_line
from langchain_gemma_jax.server.ollama.forms import LINES, line
from langchain_gemma_jax.server.ollama.messages import shown
from langchain_gemma_jax.server.ollama.names import meant, name_in
from langchain_gemma_jax.server.ollama.notes import Notes

_KNOWN = {
    *SHARED, "prompt", "suffix", "system", "template", "context", "raw", "images", "width", "height", "steps",
}  # fmt: skip
_REFUSED: Mapping[str, str] = {  # fields that would change an answer
    "template": "a model's own chat format is used. Write the text yourself, with raw",
    "context": "a conversation is sent as messages to /api/chat, where what is known of it is not read again",
    "width": "no model here draws pictures",
    "height": "no model here draws pictures",
    "steps": "no model here draws pictures",
}
_OF_CHATS = ("system", "images", "format", "think", "logprobs", "top_logprobs")  # texts that are gone on with have none


class OllamaGenerate:
    """Answers to prompts, by ``/api/generate``."""

    streams_as = LINES

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Return the answer, whole or line by line.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnknownModelError: the model is not served.
        """
        refuse_unknown(body, _KNOWN)
        for name, why in _REFUSED.items():
            if body.get(name):
                raise InputError(f"{name}: this is not here: {why}. Leave it out.")
        notes, name = Notes(), name_in(body)
        answering = Answering(name, as_response, notes, caller.clock)
        model, wants_lines = meant(caller.models, name), streams(body)
        prompt = as_text(body.get("prompt") or "", "prompt")
        suffix = as_text(body.get("suffix") or "", "suffix") or None
        raw = as_truth(body.get("raw"), "raw")
        if not prompt and suffix is None and not body.get("images"):
            loading = loaded(model, keep_alive_in(body, caller, notes), answering, caller)
            return one_line(loading) if wants_lines else loading
        if raw or suffix is not None:
            _refuse_of_chats(body, "suffix" if suffix is not None else "raw")
            text = ContinuedText(prompt, suffix, options_in(body, model, caller, notes))
            return (_lines if wants_lines else _whole)(text, answering)
        begun = caller.begin(_messages(prompt, body), options_in(body, model, caller, notes))
        return (streamed if wants_lines else whole)(begun, answering)


async def _whole(text: ContinuedText, answering: Answering) -> dict[str, Any]:
    answering.notes.listen()
    done = await text.whole()
    return _end(answering, done, done.text)


async def _lines(text: ContinuedText, answering: Answering) -> AsyncGenerator[bytes, None]:
    answering.notes.listen()
    async with aclosing(text.pieces()) as pieces:
        async for piece in pieces:
            if isinstance(piece, Completion):
                yield line(_end(answering, piece, ""))
            else:
                yield answering.line(AnswerContent(piece))


def _end(answering: Answering, done: Completion, text: str) -> dict[str, Any]:
    times = done.timings
    written = max(0.0, times.total_s - times.first_token_s)
    spent = EngineTimes(times.queued_s, times.prefill_s, written, times.total_s)
    counts = TokenCounts(done.prompt_tokens, done.reused_tokens, done.generated_tokens)
    return answering.ended(AnswerContent(text), str(done.finish_reason), spent, counts)


def _refuse_of_chats(body: Mapping[str, Any], because: str) -> None:
    for name in _OF_CHATS:
        if body.get(name):
            raise InputError(f"{name}: with {because} the text is gone on with as it is. Leave one of them out.")


def _messages(prompt: str, body: Mapping[str, Any]) -> list[BaseMessage]:
    system = as_text(body.get("system") or "", "system")
    before: list[BaseMessage] = [SystemMessage(system)] if system else []
    return [*before, HumanMessage(shown(prompt, body.get("images"), ""))]
