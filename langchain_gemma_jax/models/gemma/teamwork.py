"""Collective operations of devices that divide one model's matrices, within a forward pass.

The forward pass calls a ``Teamwork`` wherever a device has only a part of the numbers it needs. Where a device has
every matrix whole, this is ``ALONE``, which adds no operation to a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import jax

from langchain_gemma_jax.models.seams.weights import Plan, rows_of

LookUp: TypeAlias = tuple[jax.Array, Plan]
"""The ids to look up in a table, and the plan of a dense table."""


class Teamwork:
    """The operations for a device that has every matrix whole. ``MeshTeamwork`` has those for several devices."""

    def look_up(self, params: Mapping[str, Any], asked: Mapping[str, LookUp]) -> dict[str, jax.Array]:
        """Return rows of tables, by table name: float32 ``[..., width]``."""
        return {name: rows_of(params[name], ids, plan) for name, (ids, plan) in asked.items()}

    def gather_input(self, layer: int, name: str, x: jax.Array) -> jax.Array:  # noqa: ARG002  it takes all
        """Gather the input of a layer's matrix of this name from ``x``, of which each device has its own part."""
        return x

    def sums(self, layer: int, parts: Mapping[str, jax.Array]) -> dict[str, jax.Array]:  # noqa: ARG002  they are sums
        """Sum the products with a layer's matrices of these names over the devices' parts."""
        return dict(parts)

    def own_experts(self, layer: int, choice: jax.Array, experts: int) -> tuple[jax.Array, int]:  # noqa: ARG002
        """Return choices of experts relative to this device's first expert, and its number of experts.

        A choice of another device's expert becomes that number.
        """
        return choice, experts


ALONE = Teamwork()
