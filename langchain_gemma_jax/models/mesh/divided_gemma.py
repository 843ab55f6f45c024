"""Gemma on several devices: each does its own heads, its part of the feed-forward, its experts, its rows of the tables.

One function is traced, in which all arrays are a device's own parts (``jax.shard_map``), and it is the forward pass
that a single device has. So the compiler decides nothing about what is moved: two sums in each layer, one behind the
embedding, and the scores, of which each device has those of its own rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.division import Section, kv_heads, query_heads
from langchain_gemma_jax.models.configuration.model_config import CacheLayer, CacheLayout, LayerConfig, ModelConfig
from langchain_gemma_jax.models.gemma.forward import forward_apart, logits
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma, GemmaFacts
from langchain_gemma_jax.models.gemma.kv_cache import AXES, KVCache, LayerKV
from langchain_gemma_jax.models.gemma.teamwork import LookUp, Teamwork
from langchain_gemma_jax.models.mesh.partitions import WHOLE, Partitions
from langchain_gemma_jax.models.recipes.recipe import Recipe
from langchain_gemma_jax.models.weights import Weight, map_specs, rows_of


@dataclass(frozen=True)
class DividedGemma(GemmaFacts):
    """A Gemma of any generation, divided among the devices of a mesh."""

    where: Partitions

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
        caches: tuple[KVCache, ...],
        keep: jax.Array | None,
    ) -> tuple[jax.Array, tuple[KVCache, ...]]:
        team, cache = self._team(recipe), (self._cache_partitions(caches[0]),) * len(caches)

        def of_a_device(
            params: Any,
            tokens: jax.Array,
            start: jax.Array,
            count: jax.Array,
            caches: tuple[KVCache, ...],
            keep: jax.Array | None,
        ) -> tuple[jax.Array, tuple[KVCache, ...]]:
            own = self.config_of_a_device
            return forward_apart(params, own, recipe, tokens, start, count, caches, keep, team)

        shared = jax.shard_map(
            of_a_device,
            mesh=self.where.mesh,
            in_specs=(self._partitions(recipe), WHOLE, WHOLE, WHOLE, cache, WHOLE),
            out_specs=(WHOLE, cache),
            check_vma=False,
        )
        found: tuple[jax.Array, tuple[KVCache, ...]] = shared(params, tokens, start, count, caches, keep)
        return found

    def logits(self, params: Any, recipe: Recipe, hidden: jax.Array) -> jax.Array:
        name = "embed" if self.config.tied_head else "head"
        names = self.where.names(self._team(recipe).ways(name))

        def of_a_device(table: Weight, hidden: jax.Array) -> jax.Array:
            own = logits({name: table}, self.config, recipe, hidden)
            return jax.lax.all_gather(own, names, axis=own.ndim - 1, tiled=True) if names else own

        partitions = self._partitions(recipe)[name]
        shared = jax.shard_map(
            of_a_device, mesh=self.where.mesh, in_specs=(partitions, WHOLE), out_specs=WHOLE, check_vma=False
        )
        found: jax.Array = shared(params[name], hidden)
        return found

    def numbers_at_work(self, tokens: int, context: int) -> int:
        return Gemma(self.config_of_a_device).numbers_at_work(tokens, context)

    @property
    def config_of_a_device(self) -> ModelConfig:
        """What each device computes: fewer heads, a narrower feed-forward."""
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

        return tuple(of(layer) for layer in cache)


class MeshTeamwork(Teamwork):
    """The work of a device of a mesh with the others. For inside ``shard_map``."""

    def __init__(self, where: Partitions, specs: Any) -> None:
        """``specs`` is the model's tree, with an ``ArraySpec`` for each array.

        Raises:
            UnsupportedModelError: some of them cannot be divided head by head.
        """
        self._where, self._specs = where, specs
        for layer in specs["layers"]:
            if not all(leaf.sections for name in ("qkv", "gate_up") for leaf in jax.tree.leaves(layer[name])):
                raise UnsupportedModelError(
                    "Its file changes the format of packed numbers within heads or within a gate, so they cannot be "
                    "divided among devices. Take another file of this model, or leave devices out."
                )

    def ways(self, name: str, layer: int | None = None) -> int:
        """How many ways a matrix goes, one of the model's own or of a layer's."""
        weight = self._specs[name] if layer is None else self._specs["layers"][layer][name]
        return self._where.division.ways_of(jax.tree.leaves(weight)[0].sections)

    def look_up(self, params: Mapping[str, Any], asked: Mapping[str, LookUp]) -> dict[str, jax.Array]:
        found: dict[str, jax.Array] = {}
        together: dict[int, list[str]] = {}  # by ways: one sum for all
        for name, (ids, plan) in asked.items():
            ways = self.ways(name)
            if ways == 1:
                found[name] = rows_of(params[name], ids, plan)
                continue
            count = jax.tree.leaves(self._specs[name])[0].sections[0].count // ways
            own = ids - self._number(ways) * count
            here = (own >= 0) & (own < count)
            rows = rows_of(params[name], jnp.clip(own, 0, count - 1), plan)
            found[name] = jnp.where(here[..., None], rows, 0.0)
            together.setdefault(ways, []).append(name)
        for ways, names in together.items():
            found |= self._sum(ways, {name: found[name] for name in names})
        return found

    def taken_by(self, layer: int, name: str, x: jax.Array) -> jax.Array:
        # What is multiplied was made by this one, which may go more ways.
        have, want = self.ways({"attn_out": "qkv", "down": "gate_up"}[name], layer), self.ways(name, layer)
        names = self._where.names(have)[len(self._where.names(want)) :]
        return jax.lax.all_gather(x, names, axis=x.ndim - 1, tiled=True) if names else x

    def sums(self, layer: int, parts: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        found: dict[str, jax.Array] = {}
        by_ways: dict[int, dict[str, jax.Array]] = {}
        for name, part in parts.items():
            by_ways.setdefault(self.ways(name, layer), {})[name] = part
        for ways, some in by_ways.items():
            found |= some if ways == 1 else self._sum(ways, some)
        return found

    def own_experts(self, layer: int, choice: jax.Array, experts: int) -> tuple[jax.Array, int]:
        ways = self.ways("experts_down", layer)
        if ways == 1:
            return choice, experts
        count = experts // ways
        own = choice - self._number(ways) * count
        return jnp.where((own >= 0) & (own < count), own, count), count

    def _number(self, ways: int) -> jax.Array:
        """Which of the parts, when there are so many, this device has."""
        number: jax.Array = jax.lax.axis_index(self._where.names(ways))
        return number

    def _sum(self, ways: int, parts: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        """The sums over the devices, of all these arrays at once: what counts is how often they meet."""
        names, shapes = self._where.names(ways), {name: part.shape for name, part in parts.items()}
        if len(parts) == 1:
            return {name: jax.lax.psum(part, names) for name, part in parts.items()}
        flat = jax.lax.psum(jnp.concatenate([part.reshape(-1) for part in parts.values()]), names)
        found, at = {}, 0
        for name, shape in shapes.items():
            found[name] = flat[at : at + prod(shape)].reshape(shape)
            at += prod(shape)
        return found
