"""Teaches chosen heads where to look (``training.data.pointers``): the loss is of how little they look there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from training.attend import seen
from training.data.pointers import (
    BEHIND,
    CHOSEN,
    DECLARED,
    KEY,
    KEY_BEGINS,
    LABEL,
    LABELLED,
    LABELS,
    LED_HERE,
    NAME,
    NAME_BEGINS,
    PLACES,
    SAME_WORD,
    VALUE,
    VALUE_BEFORE,
    VALUE_BEGINS,
    WITHIN,
    WRITTEN,
)


@dataclass(frozen=True)
class Looking:
    """A head that learns one look."""

    look: int
    layer: int
    kv_head: int
    head: int  # of those that share the keys


HEADS = {
    "sprout-s": (
        Looking(NAME, 2, 0, 0),
        Looking(NAME_BEGINS, 2, 1, 0),
        Looking(SAME_WORD, 3, 0, 0),
        Looking(DECLARED, 3, 1, 0),
        Looking(LABELS, 3, 0, 1),
        Looking(WITHIN, 3, 1, 1),
        Looking(LED_HERE, 4, 0, 0),
        Looking(LABELLED, 4, 1, 0),
        Looking(LABEL, 4, 0, 1),
        Looking(BEHIND, 4, 1, 1),
        Looking(CHOSEN, 5, 0, 1),
        Looking(WRITTEN, 5, 0, 0),
        Looking(KEY, 5, 1, 0),
        Looking(KEY_BEGINS, 5, 1, 0),
        Looking(VALUE, 5, 1, 1),
        Looking(VALUE_BEGINS, 5, 1, 1),
        Looking(VALUE_BEFORE, 5, 0, 1),
    ),
    # The same, in layers between which others were added.
    "sprout-m": (
        Looking(NAME, 4, 0, 0),
        Looking(NAME_BEGINS, 4, 1, 0),
        Looking(SAME_WORD, 5, 0, 0),
        Looking(DECLARED, 5, 1, 0),
        Looking(LABELS, 5, 0, 1),
        Looking(WITHIN, 5, 1, 1),
        Looking(LED_HERE, 8, 0, 0),
        Looking(LABELLED, 8, 1, 0),
        Looking(LABEL, 8, 0, 1),
        Looking(BEHIND, 8, 1, 1),
        Looking(CHOSEN, 9, 0, 1),
        Looking(WRITTEN, 9, 0, 0),
        Looking(KEY, 9, 1, 0),
        Looking(KEY_BEGINS, 9, 1, 0),
        Looking(VALUE, 9, 1, 1),
        Looking(VALUE_BEGINS, 9, 1, 1),
        Looking(VALUE_BEFORE, 9, 2, 1),
        # Copies of heads above, for more of what is passed on.
        Looking(LABELS, 5, 2, 1),
        Looking(LABELS, 7, 2, 1),
        Looking(LABEL, 8, 2, 1),
    ),
}

_NONE = -1e9  # the score of what is not seen
_LEAST = 1e-30  # of attention, where it is asked how little there is

Asked = tuple[jax.Array, jax.Array]
"""A layer's scaled queries ``[row, kv_head, group, token, head_dim]`` and keys ``[row, kv_head, token, head_dim]``."""


def look_loss(
    config: ModelConfig, looking: Sequence[Looking], asked: Sequence[Asked], batch: Mapping[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The mean loss of all looks, and for each of them which share of its head's attention is where it should be."""
    losses, shares = [], []
    for each in looking:
        queries, keys = asked[each.layer]
        loss, share = _one(
            queries[:, each.kv_head, each.head],
            keys[:, each.kv_head],
            config.layers[each.layer].window,
            batch["segments"],
            batch["looks"][:, each.look, : PLACES[each.look]],
            batch["marks"][:, each.look],
            shared=each.look == LED_HERE,
        )
        losses.append(loss)
        shares.append(share)
    return jnp.mean(jnp.stack(losses)), jnp.stack(shares)


def _one(
    queries: jax.Array,
    keys: jax.Array,
    window: int | None,
    segments: jax.Array,
    looks: jax.Array,
    marks: jax.Array,
    *,
    shared: bool,
) -> tuple[jax.Array, jax.Array]:
    place, first, stop, mark = (looks[..., column] for column in range(4))  # [row, place]
    asked = jnp.take_along_axis(queries, place[..., None], axis=1)
    scores = jnp.einsum("rpd,rtd->rpt", asked, keys, preferred_element_type=jnp.float32)
    token = jnp.arange(keys.shape[1])[None, None]
    distance = place[..., None] - token
    visible = (distance >= 0) & (distance < (keys.shape[1] if window is None else window))
    visible &= seen(jnp.take_along_axis(segments, place, axis=1)[..., None], segments[:, None])
    marked = (marks[:, None] == mark[..., None]) | ((mark < 0)[..., None] & (marks[:, None] & -mark[..., None] > 0))
    wanted = visible & (token >= first[..., None]) & (token < stop[..., None]) & marked
    taught = jnp.any(wanted, axis=-1)
    scores = jnp.where(visible, scores, _NONE)
    most = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    weights = jnp.exp(scores - most)  # once for both sums: this is what takes time
    total = jnp.log(jnp.sum(weights, axis=-1))
    there = total - jnp.log(jnp.maximum(jnp.sum(jnp.where(wanted, weights, 0.0), axis=-1), _LEAST))
    missed = _not_shared_so(scores - most - total[..., None], wanted, marks) if shared else there
    count = jnp.maximum(jnp.sum(taught), 1).astype(jnp.float32)
    share = jnp.sum(jnp.where(taught, jnp.exp(-there), 0.0)) / count
    return jnp.sum(jnp.where(taught, missed, 0.0)) / count, share


def _not_shared_so(logs: jax.Array, wanted: jax.Array, marks: jax.Array) -> jax.Array:
    """How far attention is from what is wanted where each of several tokens counts.

    What leads to one tool alone says more than what leads to many: each bit that a mark has shares its weight.
    """
    bits = jnp.maximum(jax.lax.population_count(jnp.abs(marks)), 1).astype(jnp.float32)
    weights = jnp.where(wanted, 1 / bits[:, None], 0.0)
    weights /= jnp.maximum(jnp.sum(weights, axis=-1, keepdims=True), 1e-9)
    return jnp.sum(jnp.where(wanted, weights * (jnp.log(jnp.maximum(weights, 1e-9)) - logs), 0.0), axis=-1)
