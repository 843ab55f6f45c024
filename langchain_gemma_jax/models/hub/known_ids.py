"""Suggestions for an unknown model name: ids of published models."""

from __future__ import annotations

import difflib
import re
from urllib.parse import urlsplit

from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED
from langchain_gemma_jax.models.hub.hub_request import is_model_id

_LATEST = {  # the size behind a name without one, where Ollama has several
    "gemma": "gemma-7b",
    "gemma2": "gemma-2-9b",
    "gemma3": "gemma-3-4b",
    "gemma4": "gemma-4-e4b",
    "functiongemma": "functiongemma-270m",
}
_EMBEDDERS = {"embeddinggemma": "google/embeddinggemma-300m", "embeddinggemma-300m": "google/embeddinggemma-300m"}

_ACTIVE = re.compile(r"-(e\d+b)$")  # Gemma 4's sizes with an E are written large


def hub_id(size: str) -> str:
    """Return the id of the instruction-tuned model of a published size.

    >>> hub_id("gemma-3-1b"), hub_id("gemma-4-e2b")
    ('google/gemma-3-1b-it', 'google/gemma-4-E2B-it')
    """
    return "google/" + _ACTIVE.sub(lambda found: f"-{found[1].upper()}", size) + "-it"


def meant_by(name: str) -> str | None:
    """Return the name of a model that is close to an unknown name; None if there is none.

    >>> meant_by("gemma-3-1b-it"), meant_by("gemma3:4b"), meant_by("sprout_m")
    ('google/gemma-3-1b-it', 'google/gemma-3-4b-it', 'sprout-m')
    >>> meant_by("https://huggingface.co/google/gemma-3-1b-it/tree/main")
    'google/gemma-3-1b-it'
    """
    if "://" in name or name.startswith(("huggingface.co/", "hf.co/")):
        path = urlsplit(name if "://" in name else f"//{name}").path
        model_id = "/".join(path.strip("/").split("/")[:2])
        return model_id if is_model_id(model_id) else None
    ids = {each: each for each in EMBEDDED} | _ids()
    close = difflib.get_close_matches(_as_here(name), ids, n=1, cutoff=0.8)
    return ids[close[0]] if close else None


def of_ollama(name: str) -> str | None:
    """Return the id on the Hub of the model that has this name in Ollama's library; None for another name.

    >>> of_ollama("gemma3:4b"), of_ollama("gemma3:1b-it-qat"), of_ollama("gemma3"), of_ollama("embeddinggemma:latest")
    ('google/gemma-3-4b-it', 'google/gemma-3-1b-it', 'google/gemma-3-4b-it', 'google/embeddinggemma-300m')
    >>> of_ollama("gemma3:5b")
    """
    bare = name.removesuffix(":latest")
    if bare in _LATEST:
        return hub_id(_LATEST[bare])
    plain = _as_here(bare)
    return _EMBEDDERS.get(plain) or _ids().get(plain)


def _as_here(name: str) -> str:
    """Return a name as a published size is written: gemma3:4b-it-q4_K_M is gemma-3-4b-it in Ollama."""
    plain = re.sub(r"[:_ ]+", "-", name.lower().rpartition("/")[2])
    return re.sub(r"^gemma(\d)", r"gemma-\1", re.sub(r"-it-.*$", "-it", plain))


def _ids() -> dict[str, str]:
    """Return the id of each published size by its names."""
    found: dict[str, str] = {}
    for size in known():
        found |= {size: hub_id(size), f"{size}-it": hub_id(size), f"{size}-pt": hub_id(size).removesuffix("it") + "pt"}
    return found
