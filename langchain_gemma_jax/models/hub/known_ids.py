"""Suggestions for an unknown model name: ids of published models."""

from __future__ import annotations

import difflib
import re
from urllib.parse import urlsplit

from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED
from langchain_gemma_jax.models.hub.hub_request import is_model_id

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
    # As Ollama writes it, gemma3:4b-it-q4_K_M is gemma-3-4b-it.
    plain = re.sub(r"[:_ ]+", "-", name.lower().rpartition("/")[2])
    plain = re.sub(r"^gemma(\d)", r"gemma-\1", re.sub(r"-it-.*$", "-it", plain))
    ids = {each: each for each in EMBEDDED}
    for size in known():
        ids |= {size: hub_id(size), f"{size}-it": hub_id(size), f"{size}-pt": hub_id(size).removesuffix("it") + "pt"}
    close = difflib.get_close_matches(plain, ids, n=1, cutoff=0.8)
    return ids[close[0]] if close else None
