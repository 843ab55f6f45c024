"""A second way to store matrices: int8 with a scale for each row. It is here to hold the seam to what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.params import Params, assemble
from langchain_gemma_jax.models.seams.weights import PLAIN, Packed, Plan, Storage


@partial(jax.tree_util.register_dataclass, data_fields=["values", "scales"], meta_fields=["dtype"])
@dataclass(frozen=True)
class Int8(Packed):
    """Each row of a matrix in bytes of its own scale, whatever the plan's layout."""

    values: Any  # [..., out, in] int8
    scales: Any  # [..., out] float32
    dtype: str  # that products are taken in

    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        return linear(x, self.values.astype(self.dtype), PLAIN) * self.scales.reshape((1,) * (x.ndim - 1) + (-1,))

    def rows(self, ids: jax.Array) -> jax.Array:
        return self.values[ids].astype(jnp.float32) * self.scales[ids][..., None]

    def matrix_at(self, index: jax.Array) -> Int8:
        return Int8(self.values[index], self.scales[index], self.dtype)


@dataclass(frozen=True)
class Int8Storage(Storage):
    """Every matrix as an ``Int8``."""

    def abstract(self, path: Path, dense: ArraySpec) -> Int8:
        values = ArraySpec(dense.shape, "int8", axes=dense.axes, along=dense.along, sections=dense.sections)
        of_outputs = dense.sections if dense.along < len(dense.shape) - 1 else ()
        scales = ArraySpec(dense.shape[:-1], "float32", axes=dense.axes[:-1], along=dense.along, sections=of_outputs)
        return Int8(values, scales, dense.dtype)

    def pack(self, path: Path, dense: ArraySpec, array: np.ndarray) -> Int8:
        logical = (array.swapaxes(-1, -2) if dense.transposed else array).astype(np.float32)
        scales = np.abs(logical).max(-1) / np.float32(127)
        return Int8(np.rint(logical / scales[..., None]).astype(np.int8), scales, dense.dtype)


def unpacked(params: Params, config: ModelConfig, recipe: Recipe) -> Params:
    """The dense parameters that stand for these, in the layout of a dense recipe."""

    def dense(path: Path, spec: ArraySpec) -> jax.Array:
        at: Any = params
        for step in path:
            at = at[step]
        if not isinstance(at, Int8):
            return at
        found = np.asarray(at.values, np.float32) * np.asarray(at.scales)[..., None]
        found = found.swapaxes(-1, -2) if spec.transposed else found
        return jax.device_put(np.ascontiguousarray(found.astype(spec.dtype)), jax.local_devices()[0])

    return assemble((path, dense(path, spec)) for path, spec in walk(abstract(config, recipe.dtype, recipe.layout)))
