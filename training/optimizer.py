"""The optimizer: orthogonal steps for the layers' matrices (Muon), AdamW for the embedding and the norms.

Muon needs about half the tokens that AdamW needs here. Its steps are scaled to the size that
AdamW's have, so one learning rate serves both.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
from flax import struct
from jax.typing import DTypeLike

from langchain_gemma_jax.models.seams.params import Params
from training.product import lying

_MOMENTUM = 0.95
_ADAM_SIZE = 0.2  # the root mean square of AdamW's steps
_STEPS = 5
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial that drives singular values toward one


@struct.dataclass
class MomentumState:
    """What Muon remembers."""

    momentum: optax.Updates


def optimizer(
    peak: float, steps: int, warmup: int, decay: int, dtype: DTypeLike = jnp.bfloat16
) -> optax.GradientTransformation:
    """Learning rate: up to ``peak`` in ``warmup`` steps, level, and down to zero in the last ``decay`` steps.

    Muon's products are taken in ``dtype``: bfloat16 is exact enough.
    """
    rate = optax.join_schedules(
        [
            optax.linear_schedule(0.0, peak, warmup),
            optax.constant_schedule(peak),
            optax.linear_schedule(peak, 0.0, decay),
        ],
        [warmup, steps - decay],
    )
    matrices = optax.chain(
        orthogonal_momentum(dtype), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(rate)
    )
    others = optax.adamw(rate, b1=0.9, b2=0.98, weight_decay=0.0)
    return optax.chain(
        optax.clip_by_global_norm(1.0), optax.multi_transform({"matrix": matrices, "other": others}, kinds)
    )


def kinds(params: Params) -> Any:  # a tree of strings
    """The part of the optimizer that each array belongs to."""
    layers = [{name: "matrix" if x.ndim == 2 else "other" for name, x in layer.items()} for layer in _layers(params)]
    return {name: layers if name == "layers" else "other" for name in params}


def orthogonal_momentum(dtype: DTypeLike = jnp.bfloat16) -> optax.GradientTransformation:
    """Steps along the nearest orthogonal matrix to the momentum."""

    def init(params: optax.Params) -> MomentumState:
        return MomentumState(jax.tree.map(jnp.zeros_like, params))

    def update(
        updates: optax.Updates, state: MomentumState, _params: optax.Params | None = None
    ) -> tuple[optax.Updates, MomentumState]:
        momentum = jax.tree.map(lambda m, g: _MOMENTUM * m + g, state.momentum, updates)
        ahead = jax.tree.map(lambda m, g: _MOMENTUM * m + g, momentum, updates)
        return jax.tree.map(partial(_orthogonal, dtype=dtype), ahead), MomentumState(momentum)

    return optax.GradientTransformation(init, update)


def _orthogonal(matrix: jax.Array, dtype: DTypeLike) -> jax.Array:
    """The nearest orthogonal matrix, about.

    A matrix lies in memory as it is multiplied, its shorter side first, or each product would turn it again.
    """
    a, b, c = _COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix / (jnp.linalg.norm(matrix) + 1e-7)).astype(dtype)
    x = lying(x.T if tall else x)
    for _ in range(_STEPS):
        square = _product("ik,jk->ij", x, x)
        low = square.astype(dtype)
        square = (b * square + c * _product("ik,jk->ij", low, low)).astype(dtype)  # it is symmetric
        x = lying((a * x.astype(jnp.float32) + _product("ij,jk->ik", square, x)).astype(dtype))
    x = x.astype(jnp.float32) * (_ADAM_SIZE * max(matrix.shape) ** 0.5)
    return lying(x.T) if tall else x


def _product(sum_over: str, x: jax.Array, y: jax.Array) -> jax.Array:
    return jnp.einsum(sum_over, x, y, preferred_element_type=jnp.float32)


def _layers(params: Params) -> list[dict[str, jax.Array]]:
    layers = params["layers"]
    if not isinstance(layers, list):
        raise TypeError("expected params['layers'] to be a list of layers")
    return layers
