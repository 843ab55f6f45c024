"""``abstract(config)``: every array of a model with its shape and dtype, without its bytes.

This is the one source of shapes: for what loading reads, for what the memory ledger counts, for what
tests make up. A matrix is described by its logical ``(outputs, inputs)``, and its axes have names by which a
``Placement`` divides it among devices. The order of the axes in memory is the ``Layout``, which the matmul recipe
chooses. Matrices that are not stored as one dense array are described in ``weights.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import ml_dtypes
import numpy as np

from langchain_gemma_jax.models.configuration.division import Section, kv_heads, query_heads
from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig

ITEM_BYTES: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2}
"""The dtypes that dense weights may have, and the bytes of a number."""

TEXT_MATRIX = "dense_"
"""The name, before its number, of each matrix that the vector of a text goes through."""

Axis = TypeVar("Axis", int, str)

Path: TypeAlias = tuple[str | int, ...]
"""The path of an array in the tree: ``("layers", 3, "qkv")``."""


@dataclass(frozen=True)
class Layout:
    """The order of a matrix' axes in memory; ``True``: outputs first, ``[out, in]``."""

    layer_out_first: bool = True
    embed_out_first: bool = True  # the embedding, also the output matrix when the head is tied


Axes: TypeAlias = tuple[str, ...]
"""The logical name of each axis of an array: ``("ffw", "width")``. No names: an array that is never divided."""


def numpy_dtype(name: str) -> np.dtype[np.generic]:
    """Return the dtype of this name, bfloat16 and the like included."""
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass(frozen=True)
class ArraySpec:
    """One array: its logical shape, its dtype, its order in memory, its named axes, and how it can be divided."""

    shape: tuple[int, ...]
    dtype: str
    transposed: bool = False  # the last two axes lie swapped in memory
    axes: Axes = ()  # of ``shape``
    along: int = 0  # the axis of ``shape`` that consists of the sections
    sections: tuple[Section, ...] = ()  # each is divided separately among devices; none: the array is whole on each

    @property
    def stored_shape(self) -> tuple[int, ...]:
        return _swapped(self.shape) if self.transposed else self.shape

    @property
    def stored_axes(self) -> Axes:
        return _swapped(self.axes) if self.transposed and self.axes else self.axes

    @property
    def stored_along(self) -> int:
        """The axis of ``stored_shape`` that consists of the sections."""
        return _swapped(tuple(range(len(self.shape)))).index(self.along) if self.transposed else self.along

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


def _swapped(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return axes[:-2] + axes[-1:] + axes[-2:-1]


Tree: TypeAlias = dict[str, "ArraySpec | list[dict[str, ArraySpec]]"]


def abstract(config: ModelConfig, dtype: str = "bfloat16", layout: Layout = Layout()) -> Tree:
    """Return the model's parameter tree with dense matrices: an ``ArraySpec`` for each array.

    Matrices have ``dtype``. Norm scales and other vectors are always float32: they are small, and
    the stored ``w`` of ``(1 + w)`` would lose bits if the sum were kept in bfloat16. For matrices that are stored
    another way see ``recipe.abstract(config)``.

        >>> specs = abstract(catalog("gemma-3-270m"))
        >>> total_bytes(specs)                              # doctest: +SKIP
    """
    width = config.width

    def table() -> ArraySpec:
        shape, rows = (config.vocab_size, width), (Section("vocabulary", config.vocab_size),)
        return ArraySpec(shape, dtype, not layout.embed_out_first, ("vocab", "width"), 0, rows)

    def matrix(*sections: Section, along: int = 0, **axes: int) -> ArraySpec:
        return ArraySpec(tuple(axes.values()), dtype, not layout.layer_out_first, tuple(axes), along, sections)

    tree: Tree = {"embed": table(), "final_norm": _vector(width)}
    if not config.tied_head:
        tree["head"] = table()
    if (ple := config.per_layer_input) is not None:
        all_layers = ple.width * len(config.layers)
        if ple.vocab_size:
            # Only ever looked up by row, so never transposed.
            rows = (Section("vocabulary", ple.vocab_size),)
            tree["ple_embed"] = ArraySpec((ple.vocab_size, all_layers), dtype, axes=("vocab", "ple"), sections=rows)
        tree["ple_in"] = matrix(ple=all_layers, width=width)
        tree["ple_in_norm"] = _vector(ple.width)
    if config.embedding is not None:
        for number, (outputs, inputs) in enumerate(config.embedding.dense):
            tree[f"{TEXT_MATRIX}{number}"] = matrix(outputs=outputs, inputs=inputs)
    if (drafting := config.drafting) is not None:
        tree["from_target"] = matrix(width=width, inputs=2 * drafting.target_width)  # an embedding, a hidden state
        tree["to_target"] = matrix(outputs=drafting.target_width, width=width)
        if drafting.centroids:
            tree["centroids"] = matrix(centroids=drafting.centroids, width=width)
    tree["layers"] = [_layer(config, layer, matrix) for layer in config.layers]
    return tree


def _vector(size: int) -> ArraySpec:
    return ArraySpec((size,), "float32")


def _layer(config: ModelConfig, layer: LayerConfig, matrix: Callable[..., ArraySpec]) -> dict[str, ArraySpec]:
    width, q_width, kv_width = config.width, config.heads * layer.head_dim, layer.kv_heads * layer.head_dim
    # The projections of one input are one matrix: rows for q, then k, then v, as far as the layer has them.
    projected = 0 if not layer.owns_kv else 1 if layer.k_eq_v else 2
    queries, ffw = query_heads(config, layer.head_dim), Section("feed-forward", layer.ffw_width)
    specs: dict[str, ArraySpec] = {
        "attn_norm": _vector(width),
        "qkv": matrix(queries, *(kv_heads(layer),) * projected, heads=q_width + projected * kv_width, width=width),
        "attn_out": matrix(queries, along=1, width=width, heads=q_width),
        "ffw_norm": _vector(width),
        "gate_up": matrix(ffw, ffw, ffw=2 * layer.ffw_width, width=width),  # rows for the gate, then for up
        "down": matrix(ffw, along=1, width=width, ffw=layer.ffw_width),
    }
    if config.post_norms:
        specs["post_attn_norm"] = _vector(width)
        specs["post_ffw_norm"] = _vector(width)
    if config.qk_norm:
        specs["q_norm"] = _vector(layer.head_dim)
        if layer.owns_kv:
            specs["k_norm"] = _vector(layer.head_dim)
    if (moe := config.moe) is not None:
        stack = Section("experts", moe.experts)
        specs |= {
            "dense_post_norm": _vector(width),
            "moe_norm": _vector(width),
            "moe_post_norm": _vector(width),
            "router_scale": _vector(width),
            "router": matrix(experts=moe.experts, width=width),
            "expert_scale": _vector(moe.experts),
            "experts_gate_up": matrix(stack, experts=moe.experts, ffw=2 * moe.ffw_width, width=width),
            "experts_down": matrix(stack, experts=moe.experts, width=width, ffw=moe.ffw_width),
        }
    if (ple := config.per_layer_input) is not None:
        specs |= {
            "ple_gate": matrix(ple=ple.width, width=width),
            "ple_out": matrix(width=width, ple=ple.width),
            "ple_norm": _vector(width),
        }
    if config.layer_scale:
        specs["scale"] = ArraySpec((), "float32")
    return specs


def walk(tree: Tree) -> Iterator[tuple[Path, ArraySpec]]:
    """Yield every array with its path, always in the same order."""
    for name, value in tree.items():
        if isinstance(value, ArraySpec):
            yield (name,), value
        else:
            for index, layer in enumerate(value):
                for key, spec in layer.items():
                    yield (name, index, key), spec


def total_bytes(tree: Tree) -> int:
    """Return the bytes that the arrays will occupy on the device."""
    return sum(spec.nbytes for _, spec in walk(tree))
