"""A transformers model as the engine's ``Architecture``: its own code, traced through torchax."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.division import Division, Section
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout
from langchain_gemma_jax.models.mesh.tensor_parallel import DividedAxis, cuts_of, divided
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.kv_cache import KVCache
from langchain_gemma_jax.models.seams.placement import DeviceGrid
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.torchax.libraries import libraries
from langchain_gemma_jax.models.torchax.look_through import look_through, naming
from langchain_gemma_jax.models.torchax.meta_module import MetaModule, is_in_transformers, meta_module, most_context
from langchain_gemma_jax.models.torchax.own_attention import KeptShapes, OwnPass
from langchain_gemma_jax.models.torchax.remote_code import RemoteCode, code_in
from langchain_gemma_jax.models.torchax.traced_pass import AttentionKind, TracedPass, now

_INTEGERS = {"int64": "int32", "float64": "float32"}  # as JAX has them


@dataclass(frozen=True)
class TorchFacts:
    """The facts on a transformers model before its weights are read: plain values, a part of its programs' names."""

    config: str  # its configuration, as JSON
    model_type: str
    dtype: str  # of its matrices
    specs: tuple[tuple[str, tuple[int, ...], str], ...]  # name, shape and dtype of every parameter and buffer
    layout: CacheLayout
    vocab_size: int
    width: int
    heads: int
    max_context: int
    eos_ids: tuple[int, ...]
    kinds: tuple[AttentionKind, ...]  # of its attentions, in the order of their calls
    shapes: tuple[KeptShapes, ...]  # what each layer keeps, if its attention is its own code; else empty
    libraries: tuple[str, ...]  # with their releases: another release may compute other numbers
    cuts: tuple[DividedAxis, ...] = ()  # the axes that are divided among several devices
    code: RemoteCode | None = None  # the model's own

    @property
    def attends_by_kernel(self) -> bool:
        """True if kernels can attend: they have no sinks, and know no masks but causal ones and windows."""
        return not self.shapes and not any(kind.ruled or kind.sinks for kind in self.kinds)


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
        meta, rows = self._meta(), tokens.shape[0]
        # Padding may stand behind the last position that a model has a number for.
        positions = start[:, None] + jnp.arange(tokens.shape[1], dtype=jnp.int32)[None, :]
        positions = jnp.minimum(positions, self.facts.max_context - 1)
        traced: OwnPass | TracedPass
        if self.facts.shapes:
            shapes, most = self.facts.shapes, self.facts.max_context
            traced = OwnPass(meta.libraries, shapes, start, count, positions, cache, most)
        else:
            layout, kinds = self.facts.layout, self.facts.kinds
            traced = TracedPass(meta.libraries, recipe, layout, kinds, start, count, positions, cache)
            tokens, positions = tokens.reshape(1, -1), positions.reshape(1, -1)
        token = now.set(traced)
        try:
            with meta.libraries.tracing():
                views = meta.libraries.to_torch((dict(params), tokens, positions))
                hidden = meta.libraries.to_jax(meta.states(*views))
        finally:
            now.reset(token)
        hidden = hidden.reshape(rows, -1, hidden.shape[-1])
        hidden = hidden.astype(jnp.float32)
        if keep is not None:
            hidden = jnp.take_along_axis(hidden, keep[:, None, None], axis=1)
        return hidden, traced.complete()

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
    seen = look_through(meta)
    head_dim = max(layer.head_dim for layer in seen.layout if layer is not None)
    eos = kind.eos_token_id
    eos_ids = tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),)
    model = TorchModel(
        TorchFacts(
            config=text,
            model_type=str(kind.model_type),
            dtype=dtype,
            specs=meta.specs,
            layout=seen.layout,
            vocab_size=seen.vocab_size,
            width=seen.width,
            heads=seen.heads,
            max_context=most_context(kind),
            eos_ids=eos_ids,
            kinds=seen.kinds,
            shapes=seen.shapes,
            libraries=shared.versions,
            cuts=cuts_of(((each, shape) for each, shape, _ in meta.specs), meta.plan, seen.width, head_dim),
            code=code,
        )
    )
    with naming(meta):
        trace_step(model)
    return model


def trace_step(model: TorchModel) -> None:
    """Trace what the engine will compile, without numbers: whatever ends a request later, ends the loading now."""
    recipe, rows, tokens = Recipe(dtype=model.facts.dtype), 2, 4
    specs = model.abstract(recipe)
    params = {name: jax.ShapeDtypeStruct(spec.stored_shape, jnp.dtype(spec.dtype)) for name, spec in specs.items()}
    cache = jax.eval_shape(lambda: kv_cache.allocate(model.cache_layout, rows, kv_cache.PAGE, recipe.kv_dtype))
    number = jax.ShapeDtypeStruct((rows,), jnp.int32)

    def step(params: Any, ids: jax.Array, start: jax.Array, count: jax.Array, cache: KVCache) -> Any:
        hidden, cache = model.forward(params, recipe, ids, start, count, cache, count - 1)
        return model.logits(params, recipe, hidden), cache

    given = jax.ShapeDtypeStruct((rows, tokens), jnp.int32)
    scores, after = jax.eval_shape(step, params, given, number, number, cache)
    if scores.shape != (rows, 1, model.vocab_size) or after != cache:
        raise UnsupportedModelError(
            f"a step gives scores of {scores.shape}, expected {(rows, 1, model.vocab_size)}, or changes its cache."
        )


def own_dtype(raw: Mapping[str, object]) -> str:
    """Return a checkpoint's dtype by its configuration; float32 for float16, as for a Gemma, and if there is none."""
    dtype = str(raw.get("dtype") or raw.get("torch_dtype") or "float32").removeprefix("torch.")
    return dtype if dtype in {"float32", "bfloat16"} else "float32"


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
