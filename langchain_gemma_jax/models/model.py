"""A loaded model: what it is, its arrays, and all that belongs to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import jax

from langchain_gemma_jax.models.abstract import Path
from langchain_gemma_jax.models.config import ModelConfig

if TYPE_CHECKING:
    from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
    from langchain_gemma_jax.models.recipes import Recipe
    from langchain_gemma_jax.models.tokenizer import Tokenizer

Params: TypeAlias = dict[str, "jax.Array | list[dict[str, jax.Array]]"]
"""The parameter tree: the shape of ``abstract(config)``, with an array for each ``ArraySpec``."""


def leaves(params: Params) -> Iterator[jax.Array]:
    """Every array of the tree."""
    for value in params.values():
        if isinstance(value, list):
            for layer in value:
                yield from layer.values()
        else:
            yield value


def assemble(arrays: Iterable[tuple[Path, jax.Array]]) -> Params:
    """The tree of these arrays, which come in the order of ``abstract.walk``."""
    params: Params = {}
    layers: list[dict[str, jax.Array]] = []
    for path, array in arrays:
        match path:
            case ("layers", int(index), str(key)):
                if index == len(layers):
                    layers.append({})
                layers[index][key] = array
            case _:
                params[str(path[0])] = array
    return params | {"layers": layers}


@dataclass(frozen=True)
class ReadFrom:
    """The files that a model was read from, as they were then."""

    files: Unchanged
    tokenizer: bytes  # a digest of it


@dataclass(frozen=True, eq=False)
class Model:
    """A Gemma with its weights on a device.

    ``close()`` frees the device memory; ``with load(...) as model:`` does so at the end of the block.
    Two models are equal only if they are the same object.
    """

    config: ModelConfig
    params: Params = field(repr=False)
    tokenizer: Tokenizer = field(repr=False)
    recipe: Recipe  # how its matrices lie in memory, and how they are multiplied
    name: str  # the Hub id, or the folder's name
    generation_defaults: Mapping[str, object] = field(default_factory=dict, repr=False)  # its generation_config.json
    read_from: ReadFrom | None = field(default=None, repr=False)  # None: its weights were in memory already

    @property
    def nbytes(self) -> int:
        """The bytes that the weights occupy on the device. Known after ``close`` too."""
        return sum(array.nbytes for array in leaves(self.params))

    @property
    def closed(self) -> bool:
        """Whether the weights are gone."""
        return any(array.is_deleted() for array in leaves(self.params))

    @property
    def device(self) -> jax.Device:
        """Where its weights are, or were."""
        return next(iter(next(leaves(self.params)).sharding.device_set))

    def close(self) -> None:
        """Free every array now, whoever else still refers to one. May be called twice."""
        for array in leaves(self.params):
            if not array.is_deleted():
                array.delete()

    def reopen(self, twin: Model) -> None:
        """Take over the arrays of the same model, loaded again, after ``close``. Whoever refers to this one goes on."""
        self.params.update(twin.params)  # whose names are the same, so that a loop over them goes on too

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
