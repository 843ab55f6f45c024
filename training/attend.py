"""Attention of whole rows, with a gradient that is written out.

In blocks of tokens, each with the keys that one of them can see: most pairs of tokens are never looked at. A gradient
that is derived keeps every step of the forward pass and goes through memory four times as often. Kept here are
the shares alone; and each product is taken in an order that a processor is quick at, which those
that sum over a matrix's rows are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import jax
import jax.numpy as jnp

from training.data.drill import ASIDES
from training.product import lying

_NOT_SEEN = -1e9  # a score that leaves no share
_BLOCK, _MOST_BLOCKS = 128, 8  # tokens; more blocks leave more out, and take longer to compile

Kept = tuple[jax.Array, jax.Array, jax.Array, jax.Array, list[jax.Array], list[jax.Array]]


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def attend(
    queries: jax.Array, keys: jax.Array, values: jax.Array, segments: jax.Array, window: int | None
) -> jax.Array:
    """What each token takes from those it sees, in float32, ``[row, kv_head, group, token, head_dim]``.

    Args:
        queries: ``[row, kv_head, group, token, head_dim]``, scaled.
        keys: ``[row, kv_head, token, head_dim]``.
        values: as keys.
        segments: ``[row, token]``, as ``seen`` reads them. A token sees itself and those before it.
        window: how many of them; None for all.
    """
    return _forwards(queries, keys, values, segments, window)[0]


def _forwards(
    queries: jax.Array, keys: jax.Array, values: jax.Array, segments: jax.Array, window: int | None
) -> tuple[jax.Array, Kept]:
    rows, kv_heads, group, tokens, size = queries.shape
    kept_shares, kept_totals, mixed = [], [], []
    for block, before in _blocks(tokens, window):
        scores = _product("bktd,bksd->bkts", _joined(queries[:, :, :, block]), keys[:, :, before])
        scores = scores.reshape(rows, kv_heads, group, -1, scores.shape[-1])
        scores += _hidden(segments, block, before, window)
        shares = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        total = jnp.sum(shares, axis=-1, keepdims=True)
        shares = _joined(shares).astype(values.dtype)
        taken = _product("bkts,bksd->bktd", shares, values[:, :, before])
        mixed.append(taken.reshape(rows, kv_heads, group, -1, size) / total)
        kept_shares.append(shares)
        kept_totals.append(total)
    out = jnp.concatenate(mixed, axis=3)
    return out, (queries, keys, values, out, kept_shares, kept_totals)


def _backwards(window: int | None, kept: Kept, gradient: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, None]:
    queries, keys, values, out, kept_shares, kept_totals = kept
    tokens, dtype = queries.shape[3], values.dtype
    blocks = list(_blocks(tokens, window))
    inner = jnp.sum(gradient * out, axis=-1, keepdims=True)
    of_queries, of_keys, of_values = [], [], []
    for (block, before), shares, total in zip(blocks, kept_shares, kept_totals, strict=True):
        arrived = _joined(gradient[:, :, :, block] / total).astype(dtype)
        of_values.append(_product("bkdt,bkts->bkds", _turned(arrived), shares))
        wanted = _product("bktd,bksd->bkts", arrived, values[:, :, before])
        of_scores = (shares * (wanted - _joined(inner[:, :, :, block] / total))).astype(dtype)
        asked = _joined(queries[:, :, :, block])
        of_queries.append(
            _product("bkts,bksd->bktd", of_scores, keys[:, :, before]).reshape(gradient[:, :, :, block].shape)
        )
        of_keys.append(_product("bkdt,bkts->bkds", _turned(asked), of_scores))
    return (
        jnp.concatenate(of_queries, axis=3).astype(queries.dtype),
        _summed(of_keys, blocks).astype(dtype),
        _summed(of_values, blocks).astype(dtype),
        None,
    )


attend.defvjp(_forwards, _backwards)


def _blocks(tokens: int, window: int | None) -> Iterator[tuple[slice, slice]]:
    """Blocks of tokens, and the blocks that they see."""
    size = max(_BLOCK, -(-tokens // _MOST_BLOCKS))
    for start in range(0, tokens, size):
        first = 0 if window is None else max(0, start + 1 - window) // size * size
        stop = min(start + size, tokens)
        yield slice(start, stop), slice(first, stop)


def _hidden(segments: jax.Array, block: slice, before: slice, window: int | None) -> jax.Array:
    """What is added to the scores of what is not seen, ``[row, 1, 1, token, seen]``: the same for all heads.

    It is behind a barrier, or each of the sums over the scores of each head would find it out again.
    """
    visible = _visible(segments, block, before, window)
    added: jax.Array = jax.lax.optimization_barrier(jnp.where(visible, 0.0, _NOT_SEEN))
    return added


def _visible(segments: jax.Array, block: slice, before: slice, window: int | None) -> jax.Array:
    """``[row, 1, 1, token, seen]``."""
    distance = jnp.arange(block.start, block.stop)[:, None] - jnp.arange(before.start, before.stop)[None]
    visible = (distance >= 0) if window is None else (distance >= 0) & (distance < window)
    told = seen(segments[:, block, None], segments[:, None, before])
    return (told & visible[None])[:, None, None]


def seen(by: jax.Array, of: jax.Array) -> jax.Array:
    """Whether a token of segment ``by`` sees those of segment ``of``, if they come before it.

    It sees its own segment; and those of a conversation in segments that begin with it, ``ASIDES`` for each,
    see the first of these, and nothing of one another.
    """
    return (by == of) | (by - by % ASIDES == of)


def _joined(x: jax.Array) -> jax.Array:
    """The queries of one group as if they were more tokens: ``[row, kv_head, group * token, ...]``."""
    return x.reshape(*x.shape[:2], -1, x.shape[-1])


def _summed(parts: Sequence[jax.Array], blocks: Sequence[tuple[slice, slice]]) -> jax.Array:
    """What each block gave to those it saw, ``[row, kv_head, head_dim, seen]``, summed for each token."""
    sums = []
    for block, _ in blocks:
        given = [
            part[..., block.start - seen.start : block.stop - seen.start]
            for part, (_, seen) in zip(parts, blocks, strict=True)
            if seen.start <= block.start and block.stop <= seen.stop
        ]
        sums.append(sum(given[1:], start=given[0]))
    return jnp.swapaxes(jnp.concatenate(sums, axis=-1), 2, 3)


def _turned(x: jax.Array) -> jax.Array:
    """``[row, kv_head, token, head_dim]`` as ``[row, kv_head, head_dim, token]``, and lying so in memory."""
    return lying(jnp.swapaxes(x, 2, 3))


def _product(sum_over: str, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum(sum_over, x, y, preferred_element_type=jnp.float32)
