"""The interface between the engine and an encoder: arrays, sizes of programs, and the three parts that it runs in.

An encoder turns one picture or sound into soft tokens: vectors in the place of a text's embeddings. It runs in parts so
that steps of other requests can run in between: ``begin`` once, ``layer`` once per layer (all share one program), and
``end`` once. An encoder is a frozen dataclass of plain values: programs are traced with it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.weights import PLAIN

QUERIES_AT_ONCE = 1024  # the scores of all queries of a large picture would be more than its tower


class Sight(StrEnum):
    """The attention among the tokens of one medium, in the layers of the model that reads them."""

    CAUSAL = "causal"  # as text: those before
    LOCAL = "local"  # all of them in local layers, those before in global ones
    EVERYWHERE = "everywhere"  # all of them
    PREFIX = "prefix"  # all of them and the words behind them, however far apart; these see them, and later words too


@dataclass(frozen=True)
class Tensor:
    """One array of an encoder, and its form in checkpoints."""

    name: str  # of Hugging Face, without what some checkpoints put before it
    shape: tuple[int, ...]
    stored: tuple[int, ...] = ()  # the shape in a checkpoint, where it is another one
    added: float = 0.0  # what a checkpoint's norm leaves out of its factor

    @property
    def is_matrix(self) -> bool:
        """True for a matrix, which has the dtype of the model's matrices. Vectors are float32."""
        return len(self.shape) > 1

    def dtype(self, matrices: str) -> str:
        """Return the dtype in memory, where the model's matrices have ``matrices``."""
        return matrices if self.is_matrix else "float32"


Tensors: TypeAlias = Mapping[str, Tensor]
Arrays: TypeAlias = Mapping[str, Any]
EncoderState: TypeAlias = Mapping[str, jax.Array]
"""The values that one part of an encoder passes to the next."""


@dataclass(frozen=True)
class EncoderTree:
    """The arrays of an encoder, grouped by the part that uses them; or a ``Tensor`` in place of each."""

    begin: Mapping[str, Any]
    layers: Sequence[Mapping[str, Any]]
    end: Mapping[str, Any]

    def parts(self) -> list[Mapping[str, Any]]:
        """Return the arrays of each part, in the order in which the parts run."""
        return [self.begin, *self.layers, self.end]


@dataclass(frozen=True)
class Input:
    """Shape and dtype of one input array of an encoder."""

    shape: tuple[int, ...]
    dtype: str


class MediaEncoder(ABC):
    """An encoder's kind and sizes, without its weights."""

    sight: Sight

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """The sizes that programs are made for, ascending. ``inputs`` gives the arrays of each."""

    @property
    def layers(self) -> int:
        """Number of layers."""
        return 0

    def soft_tokens(self, size: int) -> int:
        """Return the number of soft tokens for an input of this size, padding included. By default, the size."""
        return size

    @abstractmethod
    def inputs(self, size: int) -> Mapping[str, Input]:
        """Return the input arrays of ``begin`` for an input of this size."""

    @abstractmethod
    def tensors(self) -> EncoderTree:
        """Return the encoder's arrays."""

    @abstractmethod
    def begin(self, arrays: Arrays, inputs: Mapping[str, jax.Array]) -> EncoderState:
        """Return the input of the first layer."""

    def layer(self, arrays: Arrays, state: EncoderState) -> EncoderState:  # noqa: ARG002  some have no layer
        """Return the input of the next layer, or of ``end``."""
        return state

    @abstractmethod
    def end(self, arrays: Arrays, state: EncoderState) -> jax.Array:
        """Return the soft tokens, float32 ``[token, width]``: real ones first, then padding."""

    @property
    def most_soft_tokens(self) -> int:
        """The largest number of soft tokens for one input."""
        return max(map(self.soft_tokens, self.sizes))

    @property
    def fewest_soft_tokens(self) -> int:
        """The smallest number of soft tokens for one input."""
        return 1

    @property
    def most_words(self) -> int:
        """The largest number of a text's tokens that are read at once with a medium before them.

        Above 0, every medium has the same number of soft tokens.
        """
        return 0

    @property
    def read_at_once(self) -> tuple[int, int]:
        """The smallest and the largest number of tokens that are read at once for one medium."""
        return self.fewest_soft_tokens + min(1, self.most_words), self.most_soft_tokens + self.most_words

    def takes(self, inputs: Mapping[str, Any]) -> int | None:
        """Return the size of a prepared input. None: the input is not for this encoder."""
        shapes = {name: (tuple(array.shape), str(array.dtype)) for name, array in inputs.items()}
        for size in self.sizes:
            if shapes == {name: (spec.shape, spec.dtype) for name, spec in self.inputs(size).items()}:
                return size
        return None

    def encode(self, tree: EncoderTree, inputs: Mapping[str, jax.Array]) -> jax.Array:
        """Return the soft tokens of an input, with all parts run in one call."""
        state = self.begin(tree.begin, inputs)
        for arrays in tree.layers:
            state = self.layer(arrays, state)
        return self.end(tree.end, state)


def product(x: jax.Array, weight: jax.Array, bias: jax.Array | None = None) -> jax.Array:
    """Return ``x @ weight.T``, plus ``bias`` if given: float32."""
    result = linear(x, weight, PLAIN)
    return result if bias is None else result + wide(bias, result)


LIMITS = ("input_min", "input_max", "output_min", "output_max")


def limits(key: str, name: str) -> dict[str, Tensor]:
    """Return the bounds to which the inputs and the outputs of a product are clipped."""
    return {f"{key}_{limit}": Tensor(f"{name}.{limit}", ()) for limit in LIMITS}


def clipped(x: jax.Array, arrays: Arrays, key: str) -> jax.Array:
    """Return ``product`` with a matrix, clipped to its limits if it has any."""
    if f"{key}_{LIMITS[0]}" not in arrays:
        return product(x, arrays[key])
    least, most, lowest, highest = (arrays[f"{key}_{limit}"] for limit in LIMITS)
    return jnp.clip(product(jnp.clip(x, least, most), arrays[key]), lowest, highest)


def layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array | None, eps: float) -> jax.Array:
    """Return ``x`` less its mean, over its standard deviation, times ``scale``, plus ``bias`` if given."""
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    normed = centered * jax.lax.rsqrt(jnp.mean(centered * centered, axis=-1, keepdims=True) + eps) * wide(scale, x)
    return normed if bias is None else normed + wide(bias, x)


def rms_norm(x: jax.Array, scale: jax.Array | None, eps: float) -> jax.Array:
    """Return ``x`` over its root mean square, times ``scale`` if given."""
    normed = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + eps)
    return normed if scale is None else normed * wide(scale, x)


def wide(vector: jax.Array, like: jax.Array) -> jax.Array:
    """Return a vector with as many axes as ``like``: the vector lies along the last one."""
    return vector.reshape((1,) * (like.ndim - 1) + vector.shape)


def attend(
    queries: jax.Array,  # [token, head, head_dim]
    keys: jax.Array,
    values: jax.Array,
    scale: float,
    real: jax.Array | None = None,  # [token]: True for tokens, False for padding
    dtype: Any = jnp.float32,
) -> jax.Array:
    """Attend from every token to every real token: float32 ``[token, heads * head_dim]``."""
    tokens, heads, head_dim = queries.shape
    exact = jax.lax.Precision.HIGHEST if jnp.dtype(dtype) == jnp.float32 else jax.lax.Precision.DEFAULT
    block = next(size for size in range(min(QUERIES_AT_ONCE, tokens), 0, -1) if tokens % size == 0)
    blocks = queries.astype(dtype).reshape(tokens // block, block, heads, head_dim)
    keys, values = keys.astype(dtype), values.astype(dtype)

    def one_head(queries: jax.Array, keys: jax.Array, values: jax.Array) -> jax.Array:
        scores = jnp.einsum("qd,kd->qk", queries, keys, precision=exact, preferred_element_type=jnp.float32) * scale
        if real is not None:
            scores = jnp.where(real[None, :], scores, jnp.finfo(jnp.float32).min)
        shares = jax.nn.softmax(scores, axis=-1).astype(dtype)
        return jnp.einsum("qk,kd->qd", shares, values, precision=exact, preferred_element_type=jnp.float32)

    pairs = blocks.transpose(0, 2, 1, 3).reshape(-1, block, head_dim)  # [block and head, query, head_dim]
    of_head = jnp.tile(jnp.arange(heads), tokens // block)
    by_head = keys.swapaxes(0, 1), values.swapaxes(0, 1)
    mixed_blocks = jax.lax.map(
        lambda each: one_head(each[0], by_head[0][each[1]], by_head[1][each[1]]), (pairs, of_head)
    )
    mixed: jax.Array = mixed_blocks.reshape(tokens // block, heads, block, head_dim).transpose(0, 2, 1, 3)
    return mixed.reshape(tokens, heads * head_dim)


def whole_root(number: int) -> int | None:
    """Return the integer square root of a perfect square. None: ``number`` is none."""
    root = math.isqrt(number)
    return root if root * root == number else None
