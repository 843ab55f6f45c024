"""The cost of packed weights in quality: two models' losses on one text, and how often they choose the same token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.kv_cache import allocate

CHUNK = 64  # tokens that are scored at once
TEXT = """A lighthouse is a tower with a bright lamp near its top. Sailors have looked for such lights for more than two
thousand years: they mark rocks and shallow water, and tell a ship where the entrance of a harbour is. The first ones
were fires on hills. Later, oil lamps stood behind glass, and in 1823 a lens of many rings was built that sent nearly
all of a lamp's light towards the horizon. Each lighthouse has its own pattern of flashes, so that a captain who counts
the seconds between them knows which one it is. Today most of them work without a keeper. Satellites show a ship where
it is, and yet the lights are kept: a lamp needs no receiver, and everybody can see that it is there."""
"""A page of plain English that ships with the package."""


@dataclass(frozen=True)
class Scored:
    """A model's predictions of a text."""

    loss: float  # mean of the tokens' negative log-probabilities
    best: tuple[int, ...]  # the most likely next token, at each place


@dataclass(frozen=True)
class Comparison:
    """The losses of a packed model and a dense one, and the agreement of their choices."""

    dense_loss: float
    packed_loss: float
    agreement: float  # the share of places at which both choose the same token
    tokens: int


def compare(dense: Model, packed: Model, text: str = TEXT) -> Comparison:
    """Score one text with both models, and return their difference.

    Raises:
        InputError: the text is too short or too long.
    """
    theirs, ours = score(dense, text), score(packed, text)
    return Comparison(theirs.loss, ours.loss, agreement(theirs, ours), len(ours.best))


def agreement(theirs: Scored, ours: Scored) -> float:
    """Return the share of the places of one text at which two models choose the same token."""
    same = sum(one == other for one, other in zip(theirs.best, ours.best, strict=True))
    return same / len(ours.best)


def score(model: Model, text: str) -> Scored:
    """Return a model's loss on a text, and its most likely token at each place.

    Raises:
        InputError: the text is too short or too long.
    """
    return score_ids(model, [model.tokenizer.bos_id, *model.tokenizer.encode_text(text)])


def score_ids(model: Model, ids: Sequence[int]) -> Scored:
    """Return a model's loss on ids, the first of which begins a text, and its most likely token at each place.

    Raises:
        InputError: there are too few or too many of them.
    """
    if not 1 < len(ids) <= model.architecture.max_context:
        raise InputError(f"expected a text of 1 to {model.architecture.max_context - 1} tokens, found {len(ids) - 1}.")
    places = len(ids) - 1
    capacity = -(-places // CHUNK) * CHUNK
    read, where = partial(_read, model), model.placement
    cache = allocate(
        model.recipe.kept(model.architecture.cache_layout), 1, capacity, model.recipe.kv_dtype, model.device
    )
    program = jax.jit(read)
    loss, best = 0.0, []
    for start in range(0, places, CHUNK):
        chunk, after = _padded(ids[start : start + CHUNK]), ids[start + 1 : start + CHUNK + 1]
        numbers = where.put((chunk, np.array([start], np.int32), np.array([len(after)], np.int32), _padded(after)))
        losses, tokens, cache = program(model.params, *numbers, cache)
        loss += float(np.asarray(losses)[: len(after)].sum(dtype=np.float64))
        best += np.asarray(tokens)[: len(after)].tolist()
    return Scored(loss / places, tuple(best))


def _padded(ids: Sequence[int]) -> np.ndarray[Any, Any]:
    padded = np.zeros((1, CHUNK), np.int32)
    padded[0, : len(ids)] = ids[:CHUNK]
    return padded


def _read(
    model: Model, params: Any, tokens: jax.Array, start: jax.Array, count: jax.Array, after: jax.Array, cache: Any
) -> tuple[jax.Array, jax.Array, Any]:
    """Read a chunk; return the loss of the following token and the most likely token at each place, and the cache."""
    hidden, cache = model.architecture.forward(params, model.recipe, tokens, start, count, cache, None)
    scores = model.architecture.logits(params, model.recipe, hidden)[0]
    own = jnp.take_along_axis(scores, after[0][:, None], axis=-1)[:, 0]
    return jax.nn.logsumexp(scores, axis=-1) - own, jnp.argmax(scores, axis=-1), cache
