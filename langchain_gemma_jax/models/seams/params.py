"""The parameter tree: a dict of weights, with a list of layers in it, as ``abstract.walk`` goes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import jax

from langchain_gemma_jax.models.configuration.abstract import Path
from langchain_gemma_jax.models.seams.weights import Packed, Weight

Advance: TypeAlias = Callable[[int], object] | None
"""A function that is called with the number of bytes that were read; None: nothing is called."""

Params: TypeAlias = dict[str, Any]
"""The parameter tree: the shape of ``recipe.abstract(config)``, with an array for each ``ArraySpec``."""


def leaves(params: Params) -> Iterator[jax.Array]:
    """Every array of the tree, those that a packed weight is stored in included."""
    for value in params.values():
        for layer in value if isinstance(value, list) else [{"": value}]:
            for weight in layer.values():
                yield from jax.tree.leaves(weight) if isinstance(weight, Packed) else (weight,)


def assemble(arrays: Iterable[tuple[Path, Weight]]) -> Params:
    """The tree of these weights, which come in the order of ``abstract.walk``."""
    params: Params = {}
    layers: list[dict[str, Weight]] = []
    for path, array in arrays:
        match path:
            case ("layers", int(index), str(key)):
                if index == len(layers):
                    layers.append({})
                layers[index][key] = array
            case _:
                params[str(path[0])] = array
    return params | {"layers": layers}
