"""What devices that share one model's matrices tell each other within a forward pass.

The forward pass asks a ``Teamwork`` at each place where a device has only a part of what it needs. A device that has
every matrix whole asks ``ALONE``, whose answers cost nothing: its programs are what they would be without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax

from langchain_gemma_jax.models.seams.weights import Plan, rows_of

LookUp: TypeAlias = tuple[jax.Array, Plan]
"""The ids whose rows are wanted, and how a dense table lies."""


class Teamwork:
    """The work of a device that has every matrix whole, and needs nobody."""

    def look_up(self, params: Mapping[str, Any], asked: Mapping[str, LookUp]) -> dict[str, jax.Array]:
        """Rows of tables, by the tables' names: float32 ``[..., width]``."""
        return {name: rows_of(params[name], ids, plan) for name, (ids, plan) in asked.items()}

    def taken_by(self, layer: int, name: str, x: jax.Array) -> jax.Array:  # noqa: ARG002  it takes all
        """What a layer's matrix of this name is to be multiplied by, of numbers of which each device has its own."""
        return x

    def sums(self, layer: int, parts: Mapping[str, jax.Array]) -> dict[str, jax.Array]:  # noqa: ARG002  they are sums
        """Products with a layer's matrices of these names, summed over what the devices have of each."""
        return dict(parts)

    def own_experts(self, layer: int, choice: jax.Array, experts: int) -> tuple[jax.Array, int]:  # noqa: ARG002
        """The choices, counted from this device's first expert, and how many it has: others are none of its own."""
        return choice, experts


ALONE = Teamwork()
