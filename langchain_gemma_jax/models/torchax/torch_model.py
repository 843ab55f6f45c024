"""A transformers model as the engine's ``Architecture``: its own code, traced through torchax."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Division, Section
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.mesh.tensor_parallel import DividedAxis, cuts_of, divided
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.placement import DeviceGrid
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.libraries import libraries
from langchain_gemma_jax.models.torchax.meta_module import (
    MetaModule,
    is_in_transformers,
    look_through,
    meta_module,
    most_context,
)
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode, code_in
from langchain_gemma_jax.models.torchax.traced_pass import TracedPass, now

_INTEGERS = {"int64": "int32", "float64": "float32"}  # as JAX has them


@dataclass(frozen=True)
class TorchFacts:
    """The facts on a transformers model before its weights are read: plain values, a part of its programs' names."""

    config: str  # its configuration, as JSON
    dtype: str  # of its matrices
    specs: tuple[tuple[str, tuple[int, ...], str], ...]  # name, shape and dtype of every parameter and buffer
    layout: CacheLayout
    vocab_size: int
    width: int
    heads: int
    max_context: int
    eos_ids: tuple[int, ...]
    libraries: tuple[str, ...]  # with their releases: another release may compute other numbers
    cuts: tuple[DividedAxis, ...] = ()  # the axes that are divided among several devices
    code: RemoteCode | None = None  # the model's own


@dataclass(frozen=True)
class TorchModel(Architecture):
    """A causal language model of transformers, of certain sizes."""

    facts: TorchFacts

    @property
    def vocab_size(self) -> int:
        return self.facts.vocab_size

    @property
    def width(self) -> int:
        return self.facts.width

    @property
    def max_context(self) -> int:
        return self.facts.max_context

    @property
    def eos_ids(self) -> tuple[int, ...]:
        return self.facts.eos_ids

    @property
    def cache_layout(self) -> CacheLayout:
        return self.facts.layout

    def abstract(self, recipe: Recipe) -> Any:  # noqa: ARG002  the model's own code defines its arrays
        cuts = {cut.name: cut for cut in self.facts.cuts}
        return {
            name: divided(ArraySpec(shape, _INTEGERS.get(dtype, dtype)), cuts.get(name))
            for name, shape, dtype in self.facts.specs
        }

    def among(self, where: DeviceGrid) -> Architecture:
        return DividedTorchModel(self.facts, where.division)

    def forward(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,
        start: jax.Array,
        count: jax.Array,
        cache: KVCache,
        keep: jax.Array | None,
    ) -> tuple[jax.Array, KVCache]:
        meta = self._meta()
        traced = TracedPass(meta.libraries, recipe, self.facts.layout, start, count, tokens.shape[1], cache)
        token = now.set(traced)
        try:
            with meta.libraries.tracing():
                views = meta.libraries.to_torch((dict(params), tokens, traced.positions))
                hidden = meta.libraries.to_jax(meta.states(*views))
        finally:
            now.reset(token)
        hidden = hidden.astype(jnp.float32)
        if keep is not None:
            hidden = jnp.take_along_axis(hidden, keep[:, None, None], axis=1)
        return hidden, traced.written()

    def logits(
        self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None
    ) -> jax.Array:  # the model's own head
        del recipe, real
        meta = self._meta()
        rows = hidden.reshape(-1, 1, hidden.shape[-1]).astype(self.facts.dtype)
        with meta.libraries.tracing():
            views = meta.libraries.to_torch((dict(params), rows, jnp.zeros(rows.shape[:2], jnp.int32)))
            scores: jax.Array = meta.libraries.to_jax(meta.scores(*views))
        return scores.astype(jnp.float32).reshape(*hidden.shape[:-1], self.facts.vocab_size)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        widest = max((shape[0] for _, shape, _ in self.facts.specs if len(shape) == 2), default=self.facts.width)
        widest = min(widest, 16 * self.facts.width)  # without the head, which is not part of the pass
        return tokens * (2 * widest + 2 * self.facts.width + self.facts.heads * context)

    def _meta(self) -> MetaModule:
        return meta_module(self.facts.config, self.facts.dtype, self.facts.code)


@dataclass(frozen=True)
class DividedTorchModel(TorchModel):
    """A causal language model of transformers on several devices. XLA divides the work by the arrays' sharding."""

    division: Division

    @property
    def cache_of_a_device(self) -> CacheLayout:
        def of(layer: CacheLayer | None) -> CacheLayer | None:
            if layer is None:
                return None
            ways = self.division.ways(Section("key-value heads", layer.kv_heads))
            return replace(layer, kv_heads=layer.kv_heads // ways)

        return tuple(of(layer) for layer in self.cache_layout)

    def numbers_at_work(self, tokens: int, context: int) -> int:
        ways = self.division.ways(Section("query heads", self.facts.heads))
        return -(-super().numbers_at_work(tokens, context) // ways)


def architecture_of(raw: Mapping[str, object], dtype: str, code: RemoteCode | None = None) -> TorchModel:
    """Return the architecture of a configuration. Its layers' caches are found by one call without numbers.

    Raises:
        UnsupportedModelError: transformers has no such model, or its cache cannot have a fixed size.
    """
    text = json.dumps(raw, sort_keys=True)
    shared = libraries()
    meta = meta_module(text, dtype, code)
    kind = meta.module.config
    layers = int(kind.num_hidden_layers)
    seen, width, vocab_size = look_through(meta, layers)
    layout = seen.layout(layers)
    head_dim = max(layer.head_dim for layer in layout if layer is not None)
    eos = kind.eos_token_id
    eos_ids = tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)
    return TorchModel(
        TorchFacts(
            text,
            dtype,
            meta.specs,
            layout,
            vocab_size,
            width,
            seen.heads,
            most_context(kind),
            eos_ids,
            shared.versions,
            cuts_of(((each, shape) for each, shape, _ in meta.specs), meta.plan, width, head_dim),
            code,
        )
    )


def own_dtype(raw: Mapping[str, object]) -> str:
    """Return a checkpoint's dtype by its configuration; float32 for float16, as for a Gemma, and if there is none."""
    said = str(raw.get("dtype") or raw.get("torch_dtype") or "float32").removeprefix("torch.")
    return said if said in {"float32", "bfloat16"} else "float32"


def as_before(model: Architecture, folder: Path, raw: Mapping[str, object]) -> TorchModel:
    """Return the architecture in a folder, with the options of a model that was loaded from it before.

    Raises:
        TypeError: that model was not loaded through torchax.
    """
    if not isinstance(model, TorchModel):
        raise TypeError(f"expected a model that was loaded through torchax, found {type(model).__name__}")
    known = is_in_transformers(raw.get("model_type"))
    code = code_in(folder, raw, known=known, trusted=model.facts.code is not None)
    return architecture_of(raw, model.facts.dtype, code)
