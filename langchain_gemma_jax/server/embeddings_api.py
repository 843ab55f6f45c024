"""OpenAI's ``/v1/embeddings``: texts in, vectors out, by the embedding models of this server."""

from __future__ import annotations

import base64
import struct
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from langchain_gemma_jax.chat.calling.embedding_calls import AskedVectors, vectors_of
from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import MOST_TEXTS, as_list, as_size, as_text, refuse_unknown
from langchain_gemma_jax.server.apis.openai_parts import EVENTS

_KNOWN = ("model", "input", "encoding_format", "dimensions", "user")


class EmbeddingsApi:
    """Vectors of texts, as OpenAI's clients ask for them."""

    streams_as = EVENTS  # nothing is streamed

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]]:
        """Return the vectors of texts. Nothing is added to a text: the caller writes the model's prompt before it.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnsupportedModelError: the model makes no
                vectors.
        """
        refuse_unknown(body, _KNOWN)
        texts, form = _texts(body), body.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise InputError(f"encoding_format: expected 'float' or 'base64', found {form!r:.60}.")
        named = as_text(body.get("model"), "model")
        asked = AskedVectors(
            model=caller.models.named(named),
            how=caller.models.how,
            dimensions=as_size(body.get("dimensions"), "dimensions"),
        )
        return _vectors(texts, asked, named, form, caller.clock)


async def _vectors(texts: list[str], asked: AskedVectors, named: str, form: str, clock: Clock) -> dict[str, Any]:
    found = await abegin(partial(vectors_of, texts, asked, clock), clock)
    data = [
        {"object": "embedding", "index": number, "embedding": _packed(vector) if form == "base64" else vector}
        for number, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    return {"object": "list", "data": data, "model": named, "usage": usage}


def _texts(body: Mapping[str, Any]) -> list[str]:
    given = body.get("input")
    texts = [given] if isinstance(given, str) else as_list(given, "input", MOST_TEXTS)
    if not 1 <= len(texts) <= MOST_TEXTS:
        raise InputError(f"input: expected from 1 to {MOST_TEXTS} texts, found {len(texts)}.")
    for number, text in enumerate(texts):
        if isinstance(text, int | list):
            raise InputError(
                f"input[{number}]: expected a string, found token ids: they are of another model's vocabulary. Clients "
                "of LangChain's send strings with check_embedding_ctx_length=False."
            )
        as_text(text, f"input[{number}]")
    return texts


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
