"""Checks of model names against the disk alone, without a download or a large import."""

from __future__ import annotations

import os
from pathlib import Path

from langchain_gemma_jax.errors import UnknownModelError
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED
from langchain_gemma_jax.models.gguf.ollama import PREFIX as OLLAMA
from langchain_gemma_jax.models.hub.hub_request import is_model_id
from langchain_gemma_jax.models.torchax.asked import PREFIX as TORCHAX

FORMS = "a folder, a GGUF file, an id on the Hugging Face Hub, ollama:NAME, torchax:NAME, or sprout-s"
"""The forms of a model's name, for help texts."""

_PATHS = ("./", "../", "/", "~")


def check_name(name: str) -> None:
    """Check that a name is that of a model on this machine, or has the form of one on the Hub.

    Raises:
        UnknownModelError: it is neither.
    """
    name = name.removeprefix(TORCHAX)
    if name in EMBEDDED or name.startswith(OLLAMA) or (name and os.path.exists(_here(name))):  # noqa: PTH110
        return
    if name.startswith(_PATHS):
        raise UnknownModelError(f"{name!r} is not here: there is no file or folder at {_here(name).absolute()}.")
    if is_model_id(name.partition(":")[0]):
        return
    from langchain_gemma_jax.models.hub.known_ids import meant_by

    hint = "" if (meant := meant_by(name)) is None else f" Did you mean {meant!r}?"
    raise UnknownModelError(
        f"{name!r} is neither a folder nor a file that exists here, nor a model's id on the Hugging Face Hub, "
        'which is written "organization/name", as in "google/gemma-3-1b-it", with ":Q8_0" behind it for a GGUF '
        'file of that quantization. What Ollama has is written "ollama:gemma3:4b". '
        f"Embedded models are {' and '.join(EMBEDDED)}.{hint}"
    )


def means_model(word: str) -> bool:
    """Return True if a word that could also be something else is a model's name.

    That is: the name of an embedded model, a word that begins with ``ollama:`` or ``torchax:``, the path of a model's
    file or folder, or an id with "gemma" in it.
    """
    if word in EMBEDDED or word.startswith((OLLAMA, TORCHAX)):
        return True
    path = _here(word)
    if word and os.path.exists(path):  # noqa: PTH110  which never raises, as Path.exists does
        return path.suffix == ".gguf" or (path / "config.json").is_file() or any(path.glob("*.gguf"))
    return "gemma" in word.lower() and is_model_id(word.partition(":")[0])


def _here(name: str) -> Path:
    return Path(os.path.expanduser(name))  # noqa: PTH111  which never raises
