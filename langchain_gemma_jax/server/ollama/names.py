"""Names of models as Ollama's clients write them, and the models of a server that they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_gemma_jax.errors import GemmaJaxError, InputError
from langchain_gemma_jax.models.gguf.ollama import PREFIX, find_ollama
from langchain_gemma_jax.models.hub.download import cached_copy
from langchain_gemma_jax.models.hub.known_ids import of_ollama
from langchain_gemma_jax.server.apis.caller import ServedModels
from langchain_gemma_jax.server.apis.fields import as_text

_LATEST = ":latest"
_OF_HUB = ("hf.co/", "huggingface.co/")


def name_in(body: Mapping[str, Any]) -> str:
    """Return the model's name in a request. Older clients call the field ``name``.

    Raises:
        InputError: there is none.
    """
    found = body.get("model")
    name = as_text(body.get("name") if found is None else found, "model")
    if not name.strip():
        raise InputError("model: expected a model's name, found an empty text.")
    return name


def meant(models: ServedModels, name: str) -> str:
    """Return the model that a name of Ollama's stands for: one of the server, or one that is on this machine.

    "gemma3:4b" is what Ollama's folder has by that name or, served from the Hub, google/gemma-3-4b-it.

    Raises:
        UnknownModelError: the name is none of those that the caller may use.
    """
    if name not in models.names:
        for each in spellings(name):
            if each in models.names:
                return each
        if models.others and not name.startswith(PREFIX):
            for each in spellings(name):
                if is_here(each):
                    return each
    return models.named(name)


def spellings(name: str) -> Iterator[str]:
    """Yield the names here that a name of Ollama's may stand for, the likeliest first."""
    bare = name.removesuffix(_LATEST)
    yield from (bare, PREFIX + bare, PREFIX + name, f"{PREFIX}{bare}{_LATEST}")
    for site in _OF_HUB:
        if bare.startswith(site):
            yield bare.removeprefix(site)
    if (known := of_ollama(bare.removeprefix(PREFIX))) is not None:
        yield known


def is_here(name: str) -> bool:
    """Return True for a model in Ollama's folder, or one that is whole in the Hub's cache."""
    model_id, _, file = name.partition(":")
    try:
        if name.startswith(PREFIX):
            return find_ollama(name) is not None
        return cached_copy(model_id, file or None) is not None
    except (GemmaJaxError, OSError):
        return False
