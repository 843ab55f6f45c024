"""Whether a caller asks for a model through torchax, and what such a model cannot have. Imports nothing heavy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.sources.model_names import TORCHAX

if TYPE_CHECKING:
    from langchain_gemma_jax.models.model import Model

_REFUSED = {
    "recipe": "its matrices are multiplied as transformers' code has them",
    "weights": "its matrices stay as transformers' code has them; packed ones are for Gemma",
    "activations": "its matrices are dense",
}


def is_for_torchax(source: str | os.PathLike[str], like: Model | None) -> bool:
    """Return whether a model is to be run by transformers' code."""
    if like is not None:
        return type(like.architecture).__name__ == "TorchModel"
    return isinstance(source, str) and source.startswith(TORCHAX)


def refuse_for_torchax(**asked: object) -> None:
    """Refuse options that such a model does not have.

    Raises:
        InputError: one was given.
    """
    for name, value in asked.items():
        if value is not None:
            raise InputError(f'{name}={value!r}: a model "{TORCHAX}..." takes none: {_REFUSED[name]}. Leave it out.')
