"""Names and options of models through torchax, checked without importing anything heavy."""

from __future__ import annotations

from langchain_gemma_jax.errors import InputError

PREFIX = "torchax:"

_REFUSED = {
    "recipe": "its matrices are multiplied as transformers' code has them",
    "weights": "its matrices stay as transformers' code has them; packed ones are for Gemma",
    "activations": "its matrices are dense",
    "drafter": "drafters are for Gemma 4",
}


def is_for_torchax(source: object) -> bool:
    """Return True if a model's name asks for transformers' code."""
    return isinstance(source, str) and source.startswith(PREFIX)


def refuse_for_torchax(**asked: object) -> None:
    """Refuse options that such a model does not have. None: the option was not given.

    Raises:
        InputError: one was given.
    """
    for name, value in asked.items():
        if value is not None:
            raise InputError(f'{name}={value!r}: a model "{PREFIX}..." takes none: {_REFUSED[name]}. Leave it out.')
