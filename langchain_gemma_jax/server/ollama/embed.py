"""Ollama's ``/api/embed`` and, older, ``/api/embeddings``: texts in, vectors out."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_gemma_jax.chat.calling.embedding_calls import AskedVectors, FoundVectors, vectors_of
from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import (
    MOST_TEXTS,
    as_list,
    as_size,
    as_text,
    as_truth,
    refuse_unknown,
)
from langchain_gemma_jax.server.ollama.asking import keep_alive_in
from langchain_gemma_jax.server.ollama.forms import LINES, nanoseconds
from langchain_gemma_jax.server.ollama.names import meant, name_in
from langchain_gemma_jax.server.ollama.notes import Notes
from langchain_gemma_jax.server.ollama.options import settings_of_options

_KNOWN = {"model", "input", "truncate", "dimensions", "options", "keep_alive"}
_OLDER = {"model", "prompt", "options", "keep_alive"}


class OllamaEmbed:
    """Vectors of texts, by ``/api/embed``."""

    streams_as = LINES  # nothing is streamed

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]]:
        """Return the vectors of texts. Nothing is added to a text; one that is too long is cut unless this is refused.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnsupportedModelError: the model makes no
                vectors.
        """
        refuse_unknown(body, _KNOWN)
        cuts = body.get("truncate") is None or as_truth(body["truncate"], "truncate")
        request = _read(
            body, _texts(body), caller, dimensions=as_size(body.get("dimensions"), "dimensions"), truncate=cuts
        )
        return _vectors(request, caller)


class OllamaEmbeddings:
    """The vector of one text, by ``/api/embeddings``."""

    streams_as = LINES  # nothing is streamed

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]]:
        """Return the vector of a text, as ``/api/embed`` makes it.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnsupportedModelError: the model makes no
                vectors.
        """
        refuse_unknown(body, _OLDER)
        request = _read(body, [as_text(body.get("prompt"), "prompt")], caller, dimensions=None, truncate=True)
        return _vector(request, caller)


@dataclass(frozen=True)
class VectorRequest:
    """A request for vectors, read and checked."""

    name: str  # of the model, as the caller wrote it
    texts: list[str]
    asked: AskedVectors
    notes: Notes


def _read(
    body: Mapping[str, Any], texts: list[str], caller: Caller, *, dimensions: int | None, truncate: bool
) -> VectorRequest:
    notes, name = Notes(), name_in(body)
    settings = settings_of_options(body.get("options"), notes)
    most = settings.pop("max_context", None)
    for setting in settings:
        notes.add(f"options: {setting} has no effect on vectors.")
    asked = AskedVectors(
        model=meant(caller.models, name),
        how=caller.models.how,
        dimensions=dimensions,
        truncate=truncate,
        keep_alive=keep_alive_in(body, caller, notes),
        max_context=most,
    )
    return VectorRequest(name, texts, asked, notes)


async def _vectors(request: VectorRequest, caller: Caller) -> dict[str, Any]:
    began = time.monotonic()
    found = await _found(request, caller)
    return {
        "model": request.name,
        "embeddings": found.vectors,
        "total_duration": nanoseconds(time.monotonic() - caller.clock.began),
        "load_duration": nanoseconds(began - caller.clock.began),
        "prompt_eval_count": found.tokens,
        **request.notes.field,
    }


async def _vector(request: VectorRequest, caller: Caller) -> dict[str, Any]:
    found = await _found(request, caller)
    return {"embedding": found.vectors[0], **request.notes.field}


async def _found(request: VectorRequest, caller: Caller) -> FoundVectors:
    request.notes.listen()
    found = await abegin(partial(vectors_of, request.texts, request.asked, caller.clock), caller.clock)
    if found.cut:
        which = f"{found.cut} of {len(request.texts)} texts were" if len(request.texts) > 1 else "the text was"
        request.notes.add(f"{which} too long for the context, and cut. With truncate=false that is an error.")
    return found


def _texts(body: Mapping[str, Any]) -> list[str]:
    given = body.get("input")
    texts = [given] if isinstance(given, str) else as_list(given, "input", MOST_TEXTS)
    if not texts:
        raise InputError(f"input: expected from 1 to {MOST_TEXTS} texts, found none.")
    return [as_text(text, f"input[{number}]") for number, text in enumerate(texts)]
