"""Ollama's ``/api/pull``: a model is fetched from the Hugging Face Hub, where callers may name models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from functools import partial
from typing import Any

from langchain_gemma_jax.chat.calling.starting import abegin
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError, UnknownModelError
from langchain_gemma_jax.models.configuration.embedded import embedded_folder
from langchain_gemma_jax.models.gguf.ollama import PREFIX
from langchain_gemma_jax.models.hub.download import download
from langchain_gemma_jax.models.hub.hub_request import is_model_id
from langchain_gemma_jax.models.hub.progress import Transfer
from langchain_gemma_jax.server.apis.caller import Caller
from langchain_gemma_jax.server.apis.fields import as_truth, refuse_unknown
from langchain_gemma_jax.server.http.problems import RequestError
from langchain_gemma_jax.server.ollama.asking import streams
from langchain_gemma_jax.server.ollama.forms import LINES, line
from langchain_gemma_jax.server.ollama.names import is_here, meant, name_in, spellings
from langchain_gemma_jax.stopping import current

_BETWEEN = 0.25  # seconds between two lines while a model is fetched
_DONE = {"status": "success"}


class OllamaPull:
    """Fetching of models, by ``/api/pull``."""

    streams_as = LINES

    def reply(self, body: dict[str, Any], caller: Caller) -> Awaitable[dict[str, Any]] | AsyncGenerator[bytes, None]:
        """Fetch a model unless it is here, and return what came of it, or lines that say so meanwhile.

        Raises:
            InputError: a field is unknown, or its value is not possible. UnknownModelError: no model that can be
                fetched has this name. RequestError: callers of this server may not name models.
        """
        refuse_unknown(body, ("model", "name", "insecure", "stream", "username", "password"))
        if as_truth(body.get("insecure"), "insecure"):
            raise InputError("insecure: models are fetched from the Hub, whose certificate is checked. Leave it out.")
        if body.get("username") or body.get("password"):
            raise InputError("username, password: the server has a token of its own for the Hub. Leave them out.")
        name = name_in(body)
        wanted = _to_fetch(name, caller)
        if not streams(body):
            return _fetched(wanted, caller.clock)
        return _lines(wanted, caller.clock)


def _to_fetch(name: str, caller: Caller) -> str | None:
    """Return the id on the Hub of a model that is to be fetched; None if it is here.

    Raises:
        RequestError: callers may not name models. UnknownModelError: there is no such model on the Hub.
    """
    models = caller.models
    if not models.others:
        try:
            meant(models, name)
        except UnknownModelError as error:
            raise RequestError(
                f"{error} Models are fetched for those who may name others: gemma-jax serve --any-model.",
                403,
                "not_allowed",
            ) from None
        return None
    known = [each for each in (name, *spellings(name)) if each]
    if any(each in models.names or embedded_folder(each) is not None or is_here(each) for each in known):
        return None
    for each in known:
        if not each.startswith(PREFIX) and is_model_id(each.partition(":")[0]):
            return each
    raise UnknownModelError(
        f"{name[:200]!r} is not in Ollama's folder on this machine, and no Gemma on the Hugging Face Hub is called so. "
        "Expected a name such as gemma3:4b, or an id such as google/gemma-3-4b-it or hf.co/ORGANIZATION/NAME:Q8_0."
    )


async def _fetched(wanted: str | None, clock: Clock, transfer: Transfer | None = None) -> dict[str, Any]:
    if wanted is not None:
        await abegin(partial(_fetch, wanted, transfer), clock)
    return _DONE


async def _lines(wanted: str | None, clock: Clock) -> AsyncGenerator[bytes, None]:
    yield line({"status": "pulling manifest"})
    if wanted is not None:
        transfer = Transfer()
        fetching = asyncio.ensure_future(_fetched(wanted, clock, transfer))
        try:
            while not (await asyncio.wait([fetching], timeout=_BETWEEN))[0]:
                yield line(_progress(wanted, transfer))
            await fetching
            yield line(_progress(wanted, transfer))
        finally:
            fetching.cancel()  # where the client has left: the download ends
    yield line(_DONE)


def _progress(wanted: str, transfer: Transfer) -> dict[str, Any]:
    """Return a line as Ollama has it: clients draw a bar for each digest. Here one commit of the Hub is one."""
    found: dict[str, Any] = {"status": f"pulling {wanted}"}
    if transfer.commit:
        completed, total = transfer.counts
        found |= {"digest": transfer.commit, "total": total, "completed": completed}
    return found


def _fetch(wanted: str, transfer: Transfer | None) -> None:
    model_id, _, file = wanted.partition(":")
    download(model_id, file=file or None, progress=False, stop=current(), transfer=transfer)
