"""Gemma on several devices: each has its own heads, its part of the feed-forward, its experts, its rows of the tables.

The forward pass of a single device is traced with each device's own parts of the arrays (``jax.shard_map``). So the
compiler does not choose what is moved between devices: two sums per layer, one after the embedding, and the scores, of
which each device has those of its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.division import Section, kv_heads, query_heads
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout, LayerConfig, ModelConfig
from langchain_gemma_jax.models.gemma.forward import SoftChunk, forward, logits
from langchain_gemma_jax.models.gemma.gemma_facts import GemmaFacts, numbers_at_work
from langchain_gemma_jax.models.gemma.teamwork import LookUp, Teamwork
from langchain_gemma_jax.models.seams.architecture import Made
from langchain_gemma_jax.models.seams.kv_cache import AXES, KVCache, LayerKV
from langchain_gemma_jax.models.seams.media_encoder import MediaEncoder
from langchain_gemma_jax.models.seams.placement import DeviceGrid
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.score_share import ScoreShare, largest
from langchain_gemma_jax.models.seams.weights import Weight, map_specs, rows_of

WHOLE = jax.sharding.PartitionSpec()


@dataclass(frozen=True)
class DividedGemma(GemmaFacts):
    """A Gemma of any generation, divided among the devices of a mesh."""

    where: DeviceGrid
    encoders: tuple[MediaEncoder, ...] = ()  # whole on each device

    @property
    def cache_of_a_device(self) -> CacheLayout:
        division = self.where.division

        def of(layer: LayerConfig) -> CacheLayer | None:
            if not layer.owns_kv:
                return None
            return CacheLayer(layer.kv_heads // division.ways(kv_heads(layer)), layer.head_dim, layer.window)

        return tuple(of(layer) for layer in self.config.layers)

    def forward(
        self,
        params: Any,
        recipe: Recipe,
        tokens: jax.Array,
        start: jax.Array,
        count: jax.Array,
        cache: KVCache,
        keep: jax.Array | None,
        medium: SoftChunk | None = None,
    ) -> tuple[jax.Array, KVCache]:
        """Read a chunk of text, or a medium that is whole on each device, with each device's parts of the arrays."""
        team, partitions = self._team(recipe), self._cache_partitions(cache)
        vectors = None if medium is None else medium.vectors

        def of_a_device(
            params: Any,
            tokens: jax.Array,
            start: jax.Array,
            count: jax.Array,
            cache: KVCache,
            keep: jax.Array | None,
            vectors: jax.Array | None,
        ) -> Any:
            own = self.config_of_a_device
            chunk = None if medium is None or vectors is None else replace(medium, vectors=vectors)
            return forward(params, own, recipe, tokens, start, count, cache, keep, team, chunk)

        shared = jax.shard_map(
            of_a_device,
            mesh=self.where.mesh,
            in_specs=(self._partitions(recipe), WHOLE, WHOLE, WHOLE, partitions, WHOLE, WHOLE),
            out_specs=(WHOLE, partitions),
            check_vma=False,
        )
        result: tuple[jax.Array, KVCache] = shared(params, tokens, start, count, cache, keep, vectors)
        return result

    def read_medium(
        self,
        params: Any,
        recipe: Recipe,
        encoder: int,
        tokens: jax.Array,
        vectors: jax.Array,
        start: jax.Array,
        count: jax.Array,
        cache: KVCache,
        keep: jax.Array,
    ) -> tuple[jax.Array, KVCache]:
        medium = SoftChunk.of(self.encoders[encoder], vectors)
        words = self.words_of(tokens, medium.soft)
        return self.forward(params, recipe, words, start, count, cache, keep, medium)

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array | None = None) -> jax.Array:
        name = "embed" if self.config.tied_head else "head"
        names = self.where.names(self._team(recipe).ways(name))

        def of_a_device(table: Weight, hidden: jax.Array, real: jax.Array | None) -> jax.Array:
            own = logits({name: table}, self.config, recipe, hidden, real)
            return jax.lax.all_gather(own, names, axis=own.ndim - 1, tiled=True) if names else own

        partitions = self._partitions(recipe)[name]
        shared = jax.shard_map(
            of_a_device, mesh=self.where.mesh, in_specs=(partitions, WHOLE, WHOLE), out_specs=WHOLE, check_vma=False
        )
        scores: jax.Array = shared(params[name], hidden, real)
        return scores

    def with_scores(
        self, params: Any, recipe: Recipe, hidden: jax.Array, real: jax.Array, work: Callable[..., Made], *given: Any
    ) -> Made:
        name = "embed" if self.config.tied_head else "head"
        ways = self._team(recipe).ways(name)
        if ways == 1:
            return super().with_scores(params, recipe, hidden, real, work, *given)

        def of_a_device(table: Weight, hidden: jax.Array, real: jax.Array, *given: Any) -> Made:
            return work(logits({name: table}, self.config, recipe, hidden, real), MeshScores(self.where, ways), *given)

        specs = (self._partitions(recipe)[name], WHOLE, WHOLE, *(WHOLE,) * len(given))
        shared = jax.shard_map(of_a_device, mesh=self.where.mesh, in_specs=specs, out_specs=WHOLE, check_vma=False)
        made: Made = shared(params[name], hidden, real, *given)
        return made

    def numbers_at_work(self, tokens: int, context: int) -> int:
        return numbers_at_work(self.config_of_a_device, tokens, context)

    @property
    def config_of_a_device(self) -> ModelConfig:
        """The configuration of the part that each device computes: fewer heads, a narrower feed-forward."""
        division, config = self.where.division, self.config
        heads = config.heads // division.ways(query_heads(config, 1))

        def of(layer: LayerConfig) -> LayerConfig:
            heads, ffw = division.ways(kv_heads(layer)), division.ways(Section("feed-forward", layer.ffw_width))
            return replace(layer, kv_heads=layer.kv_heads // heads, ffw_width=layer.ffw_width // ffw)

        return config.replace(heads=heads, layers=tuple(of(layer) for layer in config.layers))

    def _team(self, recipe: Recipe) -> MeshTeamwork:
        return MeshTeamwork(self.where, self.abstract(recipe))

    def _partitions(self, recipe: Recipe) -> Any:
        return map_specs(self.where.partition, self.abstract(recipe))

    def _cache_partitions(self, cache: KVCache) -> Any:
        def of(layer: LayerKV | None) -> Any:
            if layer is None:
                return None
            partition: Any = self.where.partition_of_cache(layer.keys.shape, AXES)
            return LayerKV(partition, partition)

        return KVCache(tuple(of(layer) for layer in cache.layers), WHOLE, WHOLE)  # type: ignore[arg-type]


class MeshTeamwork(Teamwork):
    """The collective operations of one device of a mesh. To be used inside ``shard_map``."""

    def __init__(self, where: DeviceGrid, specs: Any) -> None:
        """``specs``: the model's tree, with an ``ArraySpec`` for each array, which was checked when it was planned."""
        self._where, self._specs = where, specs

    def ways(self, name: str, layer: int | None = None) -> int:
        """Return the number of parts of a matrix: one of a layer, or of the whole model if ``layer`` is None."""
        weight = self._specs[name] if layer is None else self._specs["layers"][layer][name]
        return self._where.division.ways_of(jax.tree.leaves(weight)[0].sections)

    def look_up(self, params: Mapping[str, Any], asked: Mapping[str, LookUp]) -> dict[str, jax.Array]:
        whole: dict[str, jax.Array] = {}
        parts: dict[str, tuple[int, jax.Array]] = {}
        for name, (ids, plan) in asked.items():
            ways = self.ways(name)
            if ways == 1:
                whole[name] = rows_of(params[name], ids, plan)
                continue
            count = jax.tree.leaves(self._specs[name])[0].sections[0].count // ways
            own = ids - self._number(ways) * count
            here = (own >= 0) & (own < count)
            rows = rows_of(params[name], jnp.clip(own, 0, count - 1), plan)
            parts[name] = ways, jnp.where(here[..., None], rows, 0.0)
        return whole | self._sum(parts)

    def gather_input(self, layer: int, name: str, x: jax.Array) -> jax.Array:
        # ``x`` is the output of this matrix, which may go more ways.
        have, want = self.ways({"attn_out": "qkv", "down": "gate_up"}[name], layer), self.ways(name, layer)
        names = self._where.names(have)[len(self._where.names(want)) :]
        return jax.lax.all_gather(x, names, axis=x.ndim - 1, tiled=True) if names else x

    def sums(self, layer: int, parts: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        by_ways = {name: (self.ways(name, layer), part) for name, part in parts.items()}
        whole = {name: part for name, (ways, part) in by_ways.items() if ways == 1}
        return whole | self._sum({name: each for name, each in by_ways.items() if name not in whole})

    def own_experts(self, layer: int, choice: jax.Array, experts: int) -> tuple[jax.Array, int]:
        ways = self.ways("experts_down", layer)
        if ways == 1:
            return choice, experts
        count = experts // ways
        own = choice - self._number(ways) * count
        return jnp.where((own >= 0) & (own < count), own, count), count

    def _number(self, ways: int) -> jax.Array:
        """Return the index of this device's part among ``ways`` parts."""
        number: jax.Array = jax.lax.axis_index(self._where.names(ways))
        return number

    def _sum(self, parts: Mapping[str, tuple[int, jax.Array]]) -> dict[str, jax.Array]:
        """Sum arrays over the devices, all in one operation: the number of operations matters, not their size.

        An array that goes fewer ways than another is the same on several devices: each of them adds a share of it.
        """
        if not parts:
            return {}
        most = max(ways for ways, _ in parts.values())
        names = self._where.names(most)
        shares = {name: part if ways == most else part * (ways / most) for name, (ways, part) in parts.items()}
        if len(shares) == 1:
            return {name: jax.lax.psum(part, names) for name, part in shares.items()}
        flat = jax.lax.psum(jnp.concatenate([part.reshape(-1) for part in shares.values()]), names)
        sums, at = {}, 0
        for name, part in shares.items():
            sums[name] = flat[at : at + part.size].reshape(part.shape)
            at += part.size
        return sums


class MeshScores(ScoreShare):
    """The scores of one device of a mesh: those of its own rows of the output matrix. To be used inside ``shard_map``.

    Each device gathers the numbers of all devices and reduces them in the same order. So all continue with the same
    bits, and take the same branches.
    """

    def __init__(self, where: DeviceGrid, ways: int) -> None:
        """Take the share of one of ``ways`` parts of the rows."""
        self._ways, self._names = ways, where.names(ways)

    def ids(self, size: int) -> jax.Array:
        return self._first(size) + jnp.arange(size, dtype=jnp.int32)

    def total(self, size: int) -> int:
        return size * self._ways

    def places(self, ids: jax.Array, size: int) -> jax.Array:
        own = ids - self._first(size)
        return jnp.where((own >= 0) & (own < size), own, size)

    def own(self, of_all: jax.Array, size: int) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(of_all, self._first(size), size)

    def best(self, values: jax.Array, places: jax.Array, size: int, most: int) -> tuple[jax.Array, jax.Array]:
        candidates = self._of_each(values).reshape(-1)
        ids = self._of_each(self._first(size) + places).reshape(-1)
        best, at = jax.lax.top_k(candidates, min(most, candidates.size))
        return best, ids[at]

    def at(self, scores: jax.Array, ids: jax.Array) -> jax.Array:
        places = self.places(ids, scores.size)
        own = jnp.where(places < scores.size, scores[jnp.minimum(places, scores.size - 1)], 0.0)
        return jnp.sum(self._of_each(own), axis=0)

    def max(self, x: jax.Array, axis: int | None = None) -> jax.Array:
        return largest(self._of_each(largest(x, axis)), axis=0)

    def min(self, x: jax.Array) -> jax.Array:
        return jnp.min(self._of_each(jnp.min(x)))

    def sum(self, x: jax.Array) -> jax.Array:
        return jnp.sum(self._of_each(jnp.sum(x)))

    def any(self, x: jax.Array) -> jax.Array:
        return jnp.any(self._of_each(jnp.any(x)))

    def _first(self, size: int) -> jax.Array:
        first: jax.Array = jax.lax.axis_index(self._names) * size
        return first

    def _of_each(self, x: jax.Array) -> jax.Array:
        """Return the values of all devices, stacked."""
        gathered: jax.Array = jax.lax.all_gather(x, self._names)
        return gathered
