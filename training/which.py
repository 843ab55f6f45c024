"""Teaches a model to know which tool it is about, and which kind of value.

What a tool is called is many words, and passed on from token to token they blur. A number does not: the first that was
declared, the second, and so on. So there is a fixed direction for each number, the same wherever it is needed: in what
is declared, in a word that is said and leads to tools, and where a tool's name is to be written. There are others for
what a value looks like, an e-mail address or a time of day: right behind a value that was said, and where one is to be
written. The loss is of how little the hidden states point there. The directions are for training alone; in the model
that is shipped nothing knows of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.gemma.norms import rms_norm
from training.data.pointers import NUMBERED, NUMBERS

AFTER = {"sprout-s": (2, 3, 4, 3, 3), "sprout-m": (4, 5, 8, 7, 7)}
"""The layers after which it is known of what is declared, of what is said, and of what is called; and of a value that
was said, and of one that is to be written, what it looks like."""

OF_TOOLS = 3  # of these are about tools, the others about values
_SETS = (0, 0, 0, 1, 1)  # of directions

_EACH = 1 / OF_TOOLS  # is what the loss of one kind of token counts, as before there were those of values
_SCALE = 2.0  # of the hidden states' size a third is enough for certainty, and the rest is free
_NARROW = 160  # a model that is grown from a narrower one has each of its directions side by side with itself


def directions(width: int, of: int = 0) -> np.ndarray:
    """One for each number, ``[number, width]``, all of them at right angles, in the set of tools or of values."""
    narrow = _NARROW if width % _NARROW == 0 else width
    rng = np.random.default_rng(0)
    drawn = np.concatenate([rng.standard_normal((narrow, NUMBERS)) for _ in set(_SETS)], axis=1)
    narrow_ones = np.linalg.qr(drawn)[0].T[NUMBERS * of :][:NUMBERS]
    copies = width // narrow
    return np.tile(narrow_ones / copies, (1, copies)).astype(np.float32)


def which_loss(
    states: Sequence[jax.Array], after: Sequence[int], batch: Mapping[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The loss, and for each kind of token the mean probability of the numbers that it should know.

    Args:
        states: hidden states after each layer, ``[row, token, width]``.
        after: the layers of each kind of token.
        batch: its ``marks`` from ``NUMBERED`` on, one for each kind: a token's numbers as bits, 0 if none is taught.
    """
    losses, shares = [], []
    for kind, layer in enumerate(after):
        bits = batch["marks"][:, NUMBERED + kind]  # [row, token]
        wanted = ((bits[..., None] >> jnp.arange(NUMBERS)[None, None]) & 1).astype(jnp.float32)  # [row, token, number]
        taught = (bits > 0).astype(jnp.float32)
        weights = wanted / jnp.maximum(jnp.sum(wanted, axis=-1, keepdims=True), 1.0)
        states_here = rms_norm(states[layer], jnp.ones(states[layer].shape[-1], jnp.float32), 1e-6)
        pointing = jnp.asarray(directions(states_here.shape[-1], _SETS[kind]))
        scores = _SCALE * jnp.einsum("rtw,nw->rtn", states_here, pointing)
        logs = jax.nn.log_softmax(scores, axis=-1)
        apart = jnp.sum(weights * (jnp.log(jnp.maximum(weights, 1e-9)) - logs), axis=-1)
        count = jnp.maximum(jnp.sum(taught), 1.0)
        losses.append(jnp.sum(apart * taught) / count)
        shares.append(jnp.sum(jnp.sum(jnp.exp(logs) * wanted, axis=-1) * taught) / count)
    return jnp.sum(jnp.stack(losses)) * _EACH, jnp.stack(shares)
