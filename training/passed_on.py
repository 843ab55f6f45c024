"""Teaches a model to pass on how a value begins: from the value to its label behind it, and on to where it is written.

A value does not know of a label that comes later. So the label has to say which value it was, and whoever writes the
value has it from the label: two heads, and what is narrow in both blurs. A fixed direction for each token, another
one than that of the token itself, is what both are to carry. The loss is of how little the hidden states point there,
among the directions of all tokens of the row. In the model that is shipped nothing knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.gemma.norms import rms_norm
from training.configs import BOS
from training.data.pointers import LABELS, PLACES, VALUE_BEFORE

BY = (LABELS, VALUE_BEFORE)
"""The looks that tell of which value: that of a label, and that of who writes the value."""

AFTER = {"sprout-s": (3, 4), "sprout-m": (5, 8)}
"""The layers after which it is known there."""

_SCALE = 24.0  # of the cosine: a third is enough for certainty
_NARROW = 160  # a model that is grown from a narrower one has each of its directions side by side with itself


def turned(embed: jax.Array) -> jax.Array:
    """A direction for each embedding ``[..., width]``, of length 1: they are as far from one another as these."""
    width = embed.shape[-1]
    narrow = _NARROW if width % _NARROW == 0 else width
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((narrow, narrow)))[0].astype(np.float32)
    parts = embed.reshape(*embed.shape[:-1], -1, narrow) @ jnp.asarray(turn)
    made = parts.reshape(embed.shape)
    return made / jnp.maximum(jnp.linalg.norm(made, axis=-1, keepdims=True), 1e-6)


def passed_on_loss(
    states: Sequence[jax.Array], after: Sequence[int], embed: jax.Array, batch: Mapping[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The mean loss, and for labels and for who writes the mean probability of the right token.

    Args:
        states: hidden states after each layer, ``[row, token, width]``.
        after: the layers for each of ``BY``.
        embed: of all tokens, ``[token, width]``.
        batch: its ``looks`` and ``tokens``.
    """
    tokens = batch["tokens"]  # [row, token]
    directions = turned(jax.lax.stop_gradient(embed))[tokens]  # [row, token, width]
    losses, shares = [], []
    for look, layer in zip(BY, after, strict=True):
        place, first, stop = (batch["looks"][:, look, : PLACES[look], column] for column in range(3))  # [row, place]
        wanted = jnp.take_along_axis(tokens, first, axis=1)
        taught = ((stop > 0) & (wanted != BOS)).astype(jnp.float32)
        found = jnp.take_along_axis(states[layer], place[..., None], axis=1)  # [row, place, width]
        found = rms_norm(found, jnp.ones(found.shape[-1], jnp.float32), 1e-6) / found.shape[-1] ** 0.5
        scores = _SCALE * jnp.einsum("rpw,rtw->rpt", found, directions)
        right = tokens[:, None] == wanted[..., None]  # [row, place, token]
        missed = jax.nn.logsumexp(scores, axis=-1) - jax.nn.logsumexp(scores, axis=-1, where=right)
        count = jnp.maximum(jnp.sum(taught), 1.0)
        losses.append(jnp.sum(jnp.where(taught > 0, missed, 0.0)) / count)
        shares.append(jnp.sum(jnp.where(taught > 0, jnp.exp(-missed), 0.0)) / count)
    return jnp.mean(jnp.stack(losses)), jnp.stack(shares)
