"""The optimiser: orthogonal steps for the layers' matrices (Muon), AdamW for the embedding and the norms.

Muon needs about half the tokens that AdamW needs here. Its steps are scaled to the size that
AdamW's have, so one learning rate serves both.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax  # type: ignore[import-untyped]
from flax import struct

from langchain_gemma_jax.models.model import Params

_MOMENTUM = 0.95
_ADAM_SIZE = 0.2  # the root mean square of AdamW's steps
_STEPS = 5
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the polynomial that drives singular values towards one


@struct.dataclass
class MomentumState:
    """What Muon remembers."""

    momentum: optax.Updates


def optimiser(peak: float, steps: int, warmup: int, decay: int) -> optax.GradientTransformation:
    """Learning rate: up to ``peak`` in ``warmup`` steps, level, and down to zero in the last ``decay`` steps."""
    rate = optax.join_schedules(
        [
            optax.linear_schedule(0.0, peak, warmup),
            optax.constant_schedule(peak),
            optax.linear_schedule(peak, 0.0, decay),
        ],
        [warmup, steps - decay],
    )
    matrices = optax.chain(orthogonal_momentum(), optax.add_decayed_weights(0.1), optax.scale_by_learning_rate(rate))
    others = optax.adamw(rate, b1=0.9, b2=0.98, weight_decay=0.0)
    return optax.chain(
        optax.clip_by_global_norm(1.0), optax.multi_transform({"matrix": matrices, "other": others}, kinds)
    )


def kinds(params: Params) -> Any:  # a tree of strings
    """Which part of the optimiser each array belongs to."""
    layers = [{name: "matrix" if x.ndim == 2 else "other" for name, x in layer.items()} for layer in _layers(params)]
    return {name: layers if name == "layers" else "other" for name in params}


def orthogonal_momentum() -> optax.GradientTransformation:
    """Steps along the nearest orthogonal matrix to the momentum."""

    def init(params: optax.Params) -> MomentumState:
        return MomentumState(jax.tree.map(jnp.zeros_like, params))

    def update(
        updates: optax.Updates, state: MomentumState, _params: optax.Params | None = None
    ) -> tuple[optax.Updates, MomentumState]:
        momentum = jax.tree.map(lambda m, g: _MOMENTUM * m + g, state.momentum, updates)
        ahead = jax.tree.map(lambda m, g: _MOMENTUM * m + g, momentum, updates)
        return _all_orthogonal(ahead), MomentumState(momentum)

    return optax.GradientTransformation(init, update)


def _all_orthogonal(updates: optax.Updates) -> optax.Updates:
    """Each matrix made orthogonal; those of one shape together, which is less to compile and to launch."""
    matrices, structure = jax.tree.flatten(updates)
    out = list(matrices)
    for shape in dict.fromkeys(matrix.shape for matrix in matrices):
        alike = [index for index, matrix in enumerate(matrices) if matrix.shape == shape]
        made = _orthogonal(jnp.stack([matrices[index] for index in alike]))
        for place, index in enumerate(alike):
            out[index] = made[place]
    return jax.tree.unflatten(structure, out)


def _orthogonal(matrices: jax.Array) -> jax.Array:
    """Of each matrix ``[which, row, column]`` the nearest orthogonal one, about."""
    a, b, c = _COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.swapaxes(1, 2) if tall else matrices
    x = x / (jnp.linalg.norm(x, axis=(1, 2), keepdims=True) + 1e-7)

    def closer(_: int, x: jax.Array) -> jax.Array:
        square = x @ x.swapaxes(1, 2)
        return jnp.asarray(a * x + (b * square + c * square @ square) @ x)

    x = jax.lax.fori_loop(0, _STEPS, closer, x)
    x = x.swapaxes(1, 2) if tall else x
    return jnp.asarray(x * (_ADAM_SIZE * max(matrices.shape[1:]) ** 0.5))


def _layers(params: Params) -> list[dict[str, jax.Array]]:
    layers = params["layers"]
    if not isinstance(layers, list):
        raise TypeError("expected params['layers'] to be a list of layers")
    return layers
