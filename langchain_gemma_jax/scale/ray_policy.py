"""What Ray's controller asks to know how many replicas there are to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.serve.config import AutoscalingContext

from langchain_gemma_jax.scale.demand import ReplicaDemand, ReplicaLoad


class FreeRowsPolicy:
    """Has as many replicas as the engines' free rows, and the age of what waits, ask for.

    Ray applies the bounds and the delays of the deployment's configuration to what this wants.
    """

    def __init__(self, **rules: Any) -> None:
        """``rules``: what a ``ReplicaDemand`` is made of."""
        self._demand = ReplicaDemand(**rules)

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """Return how many replicas are wanted, and nothing to remember."""
        told = context.aggregated_metrics or {}
        loads = [
            ReplicaLoad(*(_of(told, name, replica) for name in ("running", "waiting", "oldest_wait_s")))
            for replica in context.running_replicas
        ]
        queued = float(context.total_queued_requests or 0.0)
        return self._demand.replicas(loads, now=context.current_num_replicas, queued=queued), {}


def _of(told: Mapping[str, Mapping[Any, float]], name: str, replica: Any) -> float:
    return float(told.get(name, {}).get(replica, 0.0))
