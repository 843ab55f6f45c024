"""One request's sampling parameters on the device: a few small arrays, copied there once for each request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

MAX_BIASES = 512
SMALLEST = float(np.finfo(np.float32).tiny)
OF_NONE, OF_THE_BEST, OF_THE_TOKEN, OF_THE_BIASED = range(4)  # the ids whose log probabilities are wanted
UNUSED = np.iinfo(np.int32).max  # beyond every vocabulary, so a scatter drops it


class Floats(NamedTuple):
    """The elements of ``Knobs.floats``, in order."""

    temperature: jax.Array
    top_p: jax.Array
    min_p: jax.Array
    repetition: jax.Array
    presence: jax.Array
    frequency: jax.Array


class Ints(NamedTuple):
    """The elements of ``Knobs.ints``, in order."""

    top_k: jax.Array  # 0: off
    prompt_length: jax.Array  # positions below it hold the prompt, the others generated tokens
    logprobs: jax.Array  # the log probabilities that are wanted: one of ``OF_NONE`` ... ``OF_THE_BIASED``
    masked: jax.Array  # 1: there is a grammar, and ``allowed`` applies
    biases: jax.Array  # the number of ``bias_ids`` in use


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Knobs:
    """Arrays of one request; with a leading axis ``[row]``, of a batch."""

    floats: jax.Array  # float32 [6]: ``Floats``
    ints: jax.Array  # int32 [5]: ``Ints``
    seed: jax.Array  # uint32 [2]: high and low word
    bias_ids: jax.Array  # int32 [512], ``UNUSED`` where there is none
    bias_values: jax.Array  # float32 [512]

    def named_floats(self) -> Floats:
        """Return the floats of one request, by name."""
        return Floats(*(self.floats[index] for index in range(len(Floats._fields))))

    def named_ints(self) -> Ints:
        """Return the ints of one request, by name."""
        return Ints(*(self.ints[index] for index in range(len(Ints._fields))))


def knobs(
    *,
    seed: int,
    prompt_length: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    presence: float = 0.0,
    frequency: float = 0.0,
    logit_bias: Mapping[int, float] | None = None,
    logprobs: int = 0,
    masked: bool = False,
) -> Knobs:
    """Return numpy arrays for a request with checked options. The caller puts them on the device explicitly.

    The defaults change nothing: they draw from the model's own distribution. ``temperature=0`` takes the best token,
    and so does a temperature too small for float32. A seed is taken modulo 2**64. A bias of -100 or less bans its
    token.
    """
    biases = logit_bias or {}
    if len(biases) > MAX_BIASES or any(not 0 <= token < UNUSED for token in biases):
        raise ValueError(
            f"logit_bias takes up to {MAX_BIASES} token ids, each from 0 to {UNUSED - 1}; "
            f"it has {len(biases)}, the smallest {min(biases)}, the largest {max(biases)}"
        )
    bias_ids = np.full(MAX_BIASES, UNUSED, np.int32)
    bias_values = np.zeros(MAX_BIASES, np.float32)
    bias_ids[: len(biases)] = list(biases)
    bias_values[: len(biases)] = list(biases.values())
    temperature = temperature if temperature >= SMALLEST else 0.0  # some devices treat smaller divisors as 0
    leaves = (
        np.array([temperature, top_p, min_p, repetition, presence, frequency], np.float32),
        np.array([top_k, prompt_length, logprobs, masked, len(biases)], np.int32),
        np.array([seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF], np.uint32),
        bias_ids,
        bias_values,
    )
    return Knobs(*cast("tuple[jax.Array, ...]", leaves))  # they become these on the device


SIZES = (len(Floats._fields), len(Ints._fields), 2, MAX_BIASES, MAX_BIASES)  # of the leaves of ``Knobs``, in order
NUMBERS = sum(SIZES)


def packed(one: Knobs) -> npt.NDArray[np.uint32]:
    """Return the knobs of a request as one array of bits ``[number]``, so that rows of them are copied at once."""
    leaves = (one.floats, one.ints, one.seed, one.bias_ids, one.bias_values)
    return np.concatenate([np.asarray(leaf).view(np.uint32) for leaf in leaves])


def unpacked(rows: jax.Array) -> Knobs:
    """Return the knobs of rows, each of them packed. For use inside a jitted program."""
    dtypes = (jnp.float32, jnp.int32, jnp.uint32, jnp.int32, jnp.float32)
    parts = jnp.split(rows, np.cumsum(SIZES)[:-1].tolist(), axis=1)
    return Knobs(*(jax.lax.bitcast_convert_type(part, kind) for part, kind in zip(parts, dtypes, strict=True)))
