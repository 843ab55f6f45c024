"""The autoscaling policy that Ray's controller calls to decide on the number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray.serve.config import AutoscalingContext

from langchain_gemma_jax.scale.demand import ReplicaDemand, ReplicaLoad


class FreeRowsPolicy:
    """Asks for as many replicas as the engines' free rows and the longest wait need.

    Ray applies the bounds and the delays of the deployment's configuration to this number.
    """

    def __init__(self, **rules: Any) -> None:
        """``rules``: the fields of ``ReplicaDemand``."""
        self._demand = ReplicaDemand(**rules)

    def __call__(self, context: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        """Return the number of replicas that are wanted, and an empty state."""
        metrics = context.aggregated_metrics or {}
        loads = [
            ReplicaLoad(*(_of(metrics, name, replica) for name in ("running", "waiting", "oldest_wait_s")))
            for replica in context.running_replicas
        ]
        queued = float(context.total_queued_requests or 0.0)
        return self._demand.replicas(loads, now=context.current_num_replicas, queued=queued), {}


def _of(metrics: Mapping[str, Mapping[Any, float]], name: str, replica: Any) -> float:
    return float(metrics.get(name, {}).get(replica, 0.0))
