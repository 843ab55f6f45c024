"""A drafter's forward pass: a chain of guesses, one after the other, behind the last token that its target read.

    tokens = drafter.chain(params, target, start, cache, count=4)

Each guess follows from the embedding of the token before it and a hidden state: the target's own for the first, the
drafter's for the others. All of them stand at the same position, and see the keys and values that the target has
computed so far. So a chain writes nothing, and one that is wrong leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp

from langchain_gemma_jax.kernels.attention import Places
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.configuration.model_config import DraftingConfig, ModelConfig
from langchain_gemma_jax.models.gemma.attention import attend_in_pages, project
from langchain_gemma_jax.models.gemma.feed_forward import feed_forward
from langchain_gemma_jax.models.gemma.forward import Params, Rotations, embed_scale, logits
from langchain_gemma_jax.models.gemma.norms import add_and_norm, rms_norm
from langchain_gemma_jax.models.seams.kv_cache import KVCache, LayerKV
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import Layer, rows_of

ORDER = "order"
"""The name, in the tree of parameters, of the tokens of each group."""


@dataclass(frozen=True)
class DraftTarget:
    """The model that is drafted for, as far as a chain needs it."""

    params: Params
    config: ModelConfig
    recipe: Recipe
    valid_vocab: int  # ids from here on are no tokens


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ChainStart:
    """The end of one conversation, at which a chain begins."""

    token: jax.Array  # [1] int32: the newest token, which the target has not read
    held: jax.Array  # [1] int32: the tokens that it has read, and so the newest token's position; at least 1
    hidden: jax.Array  # [1, width] float32: the target's output behind the last of them


@dataclass(frozen=True)
class GemmaDrafter:
    """A drafter whose layers are linked to its target's: its configuration, and how its matrices are stored."""

    config: ModelConfig
    recipe: Recipe

    @property
    def drafting(self) -> DraftingConfig:
        if self.config.drafting is None:
            raise TypeError("the configuration is no drafter's")
        return self.config.drafting

    def abstract(self) -> Any:
        """Return the parameter tree, with an ``ArraySpec`` in place of each array."""
        tree = self.recipe.abstract(self.config)
        if groups := self.drafting.centroids:
            tree |= {ORDER: ArraySpec((groups, self.config.vocab_size // groups), "int32")}
        return tree

    def chain(self, params: Params, target: DraftTarget, start: ChainStart, cache: KVCache, count: int) -> jax.Array:
        """Return ``count`` guesses, int32 ``[count]``: the best token each time. ``cache`` is the target's."""
        token, hidden, turns = start.token, start.hidden, Rotations(start.held[:, None])
        # As the target's last token did, queries see what was read, and no slot behind it: there may be keys of tokens
        # that were rejected.
        places = Places(start.held - 1, jnp.ones_like(start.held), jnp.zeros_like(start.held))
        found = []
        for _ in range(count):
            embedded = rows_of(target.params["embed"], token, target.recipe.embed)
            x = jnp.concatenate([embedded * embed_scale(target.config, target.recipe), hidden], axis=-1)
            out = self._layers(params, x[:, None], turns, places, cache)
            token = self._best(params, out, target.valid_vocab)
            hidden = linear(out, params["to_target"], self.recipe.layers)
            found.append(token)
        return jnp.concatenate(found)

    def _layers(self, params: Params, x: jax.Array, turns: Rotations, places: Places, cache: KVCache) -> jax.Array:
        """Return the normed hidden state ``[1, width]`` for an input ``[1, 1, 2 * target's width]``."""
        config, recipe, eps, form = self.config, self.recipe, self.config.norm_eps, self.recipe.between
        layers = cast("Sequence[Layer]", params["layers"])
        x = linear(x, params["from_target"], recipe.layers)
        h = rms_norm(x, layers[0]["attn_norm"], eps, form)
        for index, (layer, weights) in enumerate(zip(config.layers, layers, strict=True)):
            queries, _, _ = project(h, weights, config, layer, recipe, turns.of(layer))
            pages = cast("LayerKV", cache.layers[cast("int", layer.kv_from)])
            mixed, _ = attend_in_pages(queries, places, cache.table(layer), pages, None, config, layer, recipe)
            h = linear(mixed, weights["attn_out"], recipe.layers)
            x, h = add_and_norm(x, h, weights["post_attn_norm"], weights["ffw_norm"], eps, form)
            h = feed_forward(x, h, weights, config, recipe, index)
            x = (x + rms_norm(h, weights["post_ffw_norm"], eps, form)) * weights["scale"]
            last = index + 1 == len(layers)
            h = rms_norm(x, params["final_norm"] if last else layers[index + 1]["attn_norm"], eps, form)
        return h[:, 0]

    def _best(self, params: Params, hidden: jax.Array, valid: int) -> jax.Array:
        """Return the token with the best score, int32 ``[1]``; of equal ones the lowest id.

        With groups, only the tokens of the most promising ones are scored: some 4 thousand of 262.
        """
        config, drafting = self.config, self.drafting
        if drafting.centroids:
            promise = linear(hidden, params["centroids"], self.recipe.layers)[0]
            ids = params[ORDER][jax.lax.top_k(promise, drafting.chosen)[1]].reshape(-1)
            head = params["embed" if config.tied_head else "head"]
            scores = jnp.einsum("cw,w->c", rows_of(head, ids, self.recipe.embed), hidden[0])
        else:
            ids = jnp.arange(config.vocab_size, dtype=jnp.int32)
            scores = logits(params, config, self.recipe, hidden)[0]
        scores = jnp.where(ids < valid, scores, -jnp.inf)
        best = jnp.where(scores == jnp.max(scores), ids, valid - 1)  # NaN: the last token, which is checked as any
        return jnp.min(best)[None]
