"""The server's app on Ray Serve: a deployment of replicas for one model.

    serve run langchain_gemma_jax.scale.ray:app model=google/gemma-3-1b-it replicas=2

Several models are several applications, each with its own path. A conversation stays with its replica: Ray hashes the
header ``x-session-id``, which this package's client sends.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_gemma_jax.errors import InstallationError
from langchain_gemma_jax.scale.plan import ROWS, DeploymentPlan

try:
    from ray import serve
    from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, BackpressureConfig, RequestRouterConfig
except ImportError as error:
    raise InstallationError("Ray Serve is not installed: pip install 'langchain-gemma-jax[ray]'.") from error

_STICKY = "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"
_QUEUED_PER_REPLICA = 4  # calls that may wait in Ray's proxy, as a multiple of the calls that a replica takes


@serve.ingress()
class GemmaReplica:
    """One replica, run by Ray. Ray routes calls to it once ``__init__`` is done, when it is ready."""

    async def __init__(self, arguments: dict[str, Any]) -> None:  # type: ignore[misc]  # Ray awaits it
        """Load the model and warm up, in another thread than the event loop's."""
        from langchain_gemma_jax.scale.replica import Replica

        self._replica = await asyncio.to_thread(Replica, DeploymentPlan.read(arguments))

    def __serve_build_asgi_app__(self) -> Any:
        return self._replica.app

    async def check_health(self) -> None:
        """Raise an error if the engine has ended, so that Ray replaces the replica."""
        self._replica.check()

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Report the engine's load to Ray's controller."""
        return self._replica.load()

    def __del__(self) -> None:
        if (replica := getattr(self, "_replica", None)) is not None:
            replica.close()


def app(arguments: dict[str, Any]) -> serve.Application:
    """Return the application of one model.

        serve.run(app({"model": "sprout-m", "replicas": 2}))

    Args:
        arguments: fields of ``DeploymentPlan``. Values may be texts.

    Raises:
        InputError: an argument is unknown, or its value is not possible.
    """
    plan = DeploymentPlan.read(arguments)
    resources = {"TPU": plan.tpus} if plan.tpus else {}
    deployment = serve.deployment(
        GemmaReplica,
        name=plan.deployment,
        max_ongoing_requests=plan.ongoing,
        max_queued_requests=_QUEUED_PER_REPLICA * plan.ongoing,
        backpressure_config=BackpressureConfig(status_code=429, retry_after_s=1),
        graceful_shutdown_timeout_s=plan.drain_s,
        graceful_shutdown_wait_loop_s=0.5,
        health_check_period_s=5,
        health_check_timeout_s=30,
        request_router_config=RequestRouterConfig(request_router_class=_STICKY),
        ray_actor_options={"num_cpus": plan.cpus, "num_gpus": plan.gpus, "resources": resources},
        **_scaling(plan),
    )
    return deployment.bind({**arguments, "model": plan.named_model})


def _scaling(plan: DeploymentPlan) -> dict[str, Any]:
    if plan.max_replicas is None:
        return {"num_replicas": plan.replicas}
    policy = AutoscalingPolicy(
        policy_function="langchain_gemma_jax.scale.ray_policy:FreeRowsPolicy", policy_kwargs={"rows": ROWS}
    )
    bounds = {"min_replicas": plan.replicas, "max_replicas": plan.max_replicas}
    return {"autoscaling_config": AutoscalingConfig(policy=policy, **bounds)}
