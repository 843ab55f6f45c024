"""Attention with what kernels do not have: sinks, and masks by a rule of the model's own."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.gemma.attention import VisibleKV
from langchain_gemma_jax.models.gemma.norms import soft_cap


def attend_plainly(
    queries: jax.Array,  # [row, token, head, head_dim], scaled
    seen: VisibleKV,
    visible: jax.Array,  # [row, token, slot]: True where a query sees a key
    softcap: float | None = None,
    sinks: jax.Array | None = None,  # [head]: a score to which a share of the attention goes, and no value
) -> jax.Array:
    """Return ``[row, token, head, head_dim]`` in float32."""
    rows, tokens, heads, head_dim = queries.shape
    kv_heads = seen.keys.shape[1]
    exact = jax.lax.Precision.HIGHEST if seen.keys.dtype == jnp.float32 else jax.lax.Precision.DEFAULT
    grouped = queries.astype(seen.keys.dtype).reshape(rows, tokens, kv_heads, heads // kv_heads, head_dim)
    scores = jnp.einsum("rtkgd,rksd->rkgts", grouped, seen.keys, precision=exact, preferred_element_type=jnp.float32)
    scores = jnp.where(visible[:, None, None], soft_cap(scores, softcap), jnp.finfo(jnp.float32).min)
    most = jnp.max(scores, axis=-1, keepdims=True)
    if sinks is not None:
        sink = sinks.astype(jnp.float32).reshape(kv_heads, heads // kv_heads, 1, 1)[None]
        most = jnp.maximum(most, sink)
    shares = jnp.where(visible[:, None, None], jnp.exp(scores - most), 0.0)
    total = jnp.sum(shares, axis=-1, keepdims=True)
    if sinks is not None:
        total = total + jnp.exp(sink - most)
    shares = (shares / jnp.maximum(total, jnp.finfo(jnp.float32).tiny)).astype(seen.values.dtype)
    mixed = jnp.einsum("rkgts,rksd->rtkgd", shares, seen.values, precision=exact, preferred_element_type=jnp.float32)
    return mixed.reshape(rows, tokens, heads, mixed.shape[-1])
