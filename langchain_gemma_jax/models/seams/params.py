"""The parameter tree: a dict of weights with a list of layers, in the order of ``abstract.walk``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import jax

from langchain_gemma_jax.models.configuration.abstract import Path
from langchain_gemma_jax.models.seams.weights import Packed, Weight

Advance: TypeAlias = Callable[[int], object] | None
"""A function that is called with the number of bytes read. None: there is no callback."""

Params: TypeAlias = dict[str, Any]
"""The parameter tree: the shape of ``recipe.abstract(config)``, with an array for each ``ArraySpec``."""


def leaves(params: Params) -> Iterator[jax.Array]:
    """Yield every array of the tree, including those inside packed weights."""
    for value in params.values():
        for layer in value if isinstance(value, list) else [{"": value}]:
            for weight in layer.values():
                yield from jax.tree.leaves(weight) if isinstance(weight, Packed) else (weight,)


def assemble(arrays: Iterable[tuple[Path, Weight]]) -> Params:
    """Return the tree of these weights, which have to come in the order of ``abstract.walk``."""
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
