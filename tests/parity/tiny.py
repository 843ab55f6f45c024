"""A tiny random model of any configuration, and its forward pass compiled once for every shape.

For tests of our code against itself: its parameters come from ``abstract``, not from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, abstract
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.forward import Params, forward, logits
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.kv_cache import PAGE, KVCache, allocate
from tests.parity.architectures import with_few_layers
from tests.parity.made_up import tensor
from tests.xla_flags import as_users

FLOAT32 = Recipe(dtype="float32")
ARCHITECTURES = (
    "gemma-2b",
    "gemma-7b",
    "gemma-2-27b",
    "gemma-3-1b",
    "gemma-3-4b",
    "gemma-4-e2b",
    "gemma-4-31b",
    "gemma-4-26b-a4b",
)
"""Those of ``SHRUNK`` that differ in more than numbers."""

Floats = npt.NDArray[np.float32]


@cache
def small(name: str) -> ModelConfig:
    """The configuration of ``with_few_layers``."""
    return config_from_hf(with_few_layers(name), name)


def parameters(config: ModelConfig, recipe: Recipe = FLOAT32, seed: int = 0) -> Params:
    """Made-up weights; the same numbers in any layout."""

    def made(path: Path, spec: ArraySpec) -> jax.Array:
        kind = {
            "embed": "embed_tokens",
            "head": "embed_tokens",
            "ple_embed": "embed_tokens_per_layer",
            "ple_gate": "per_layer_input_gate",
        }
        name = "/".join([*map(str, path[:-1]), kind.get(str(path[-1]), str(path[-1]))])
        values = tensor(name, spec.shape, config.generation, seed, norm_offset=config.norm_offset)
        if name.endswith("norm"):
            values += np.float32(config.norm_offset)  # the tree holds the factor itself
        values = values.swapaxes(-1, -2) if spec.transposed else values
        return jnp.asarray(values).astype(spec.dtype)

    tree = abstract(config, recipe.dtype, recipe.layout)
    return {
        name: made((name,), value)
        if isinstance(value, ArraySpec)
        else [{key: made((name, i, key), spec) for key, spec in layer.items()} for i, layer in enumerate(value)]
        for name, value in tree.items()
    }


def _program(
    params: Params,
    config: ModelConfig,
    recipe: Recipe,
    tokens: jax.Array,
    start: jax.Array,
    count: jax.Array,
    cache: KVCache,
    keep: jax.Array | None,
) -> tuple[jax.Array, KVCache]:
    hidden, cache = forward(params, config, recipe, tokens, start, count, cache, keep)
    return logits(params, config, recipe, hidden), cache


Program: TypeAlias = Callable[..., tuple[jax.Array, KVCache]]

OPTIMIZED: Program = jax.jit(_program, static_argnums=(1, 2))
QUICK: Program = jax.jit(_program, static_argnums=(1, 2), compiler_options={"xla_backend_optimization_level": 0})
"""Without LLVM's optimizations: the same numbers but for rounding, compiled in half the time."""
AS_USERS: Program = jax.jit(
    _program,
    static_argnums=(1, 2),
    compiler_options={"xla_backend_optimization_level": 0} | as_users(),
)
"""The same by the kernels that users' XLA makes, whatever flags the tests are run with."""


class Runner:
    """One model and its cache. Rows go forward at their own pace; chunks are padded to a few lengths."""

    def __init__(
        self,
        config: ModelConfig,
        params: Params,
        *,
        rows: int = 2,
        capacity: int = 192,
        recipe: Recipe = FLOAT32,
        lengths: Sequence[int] = (1, 3, 64),
        program: Program = QUICK,
        page: int = PAGE,
    ) -> None:
        self.config, self.params, self.recipe = config, params, recipe
        self.capacity, self.lengths, self.program = capacity, lengths, program
        # Bound to a device, as the cache that comes back is where weights are: else each program compiles twice.
        cache = allocate(recipe.kept(config.cache_layout), rows, capacity, recipe.dtype, page=page)
        self.cache = jax.device_put(cache, jax.local_devices()[0])
        self.start = np.zeros(rows, np.int64)

    def read(
        self, chunks: Sequence[Sequence[int]], *, pad: Sequence[int] = (0,), keep: Sequence[int] | None = None
    ) -> list[Floats]:
        """Go on with a chunk a row: the logits of each row's tokens. Behind them come the ids of ``pad``, repeated."""
        count = np.array([len(chunk) for chunk in chunks])
        length = next(length for length in self.lengths if length >= count.max())
        tokens = np.stack([np.resize(np.asarray(pad), length) for _ in chunks])
        for row, chunk in enumerate(chunks):
            tokens[row, : len(chunk)] = chunk
        if self.start.max() + length > self.capacity:
            raise ValueError(f"{length} tokens from {self.start} do not fit into {self.capacity} slots")
        numbers = (jnp.asarray(x, jnp.int32) for x in (tokens, self.start, count))
        kept = None if keep is None else jnp.asarray(keep, jnp.int32)
        scores, self.cache = self.program(self.params, self.config, self.recipe, *numbers, self.cache, kept)
        self.start = self.start + count
        return [np.asarray(row)[: 1 if keep is not None else size] for row, size in zip(scores, count, strict=True)]
