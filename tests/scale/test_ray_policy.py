"""The settings of a deployment that Ray gets, and the questions that it asks of its policy."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Ray's own import
    pytest.importorskip("ray.serve", reason="the extra [ray]")

from langchain_gemma_jax import InputError
from langchain_gemma_jax.scale.ray import app
from langchain_gemma_jax.scale.ray_policy import FreeRowsPolicy


def test_the_policy_reads_what_replicas_told():
    policy = FreeRowsPolicy(rows=8)
    told = {"running": {"a": 8.0, "b": 2.0}, "waiting": {"a": 8.0}, "oldest_wait_s": {"a": 6.0}}
    context = SimpleNamespace(
        aggregated_metrics=told, running_replicas=["a", "b", "new"], total_queued_requests=None, current_num_replicas=3
    )
    assert policy(context) == (4, {})  # one waits for too long
    told["oldest_wait_s"] = {}
    context.total_queued_requests = 18
    assert policy(context) == (6, {})
    context.aggregated_metrics = None
    assert policy(context) == (3, {})


def test_a_deployment_is_held_to_its_plan():
    made = app({"model": "sprout-s", "replicas": "2", "call_s": "60", "waiting": "4", "gpus": "1"})._bound_deployment
    assert (made.name, made.num_replicas, made.max_ongoing_requests, made.max_queued_requests) == (
        "sprout-s",
        2,
        12,
        48,
    )
    config = made._deployment_config
    assert config.graceful_shutdown_timeout_s == 70
    assert config.request_router_config.request_router_class.endswith("ConsistentHashRouter")
    assert config.backpressure_config.status_code == 429
    assert made.ray_actor_options["num_gpus"] == 1
    scaled = app({"max_replicas": 5, "tpus": 4})._bound_deployment
    scaling = scaled._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (1, 5)
    policy = scaling.policy.get_policy()(**scaling.policy.policy_kwargs)  # as the controller makes it
    assert policy(
        SimpleNamespace(aggregated_metrics={}, running_replicas=[], total_queued_requests=7, current_num_replicas=1)
    ) == (2, {})
    assert scaled.ray_actor_options["resources"] == {"TPU": 4}
    with pytest.raises(InputError, match="no argument is called rows"):
        app({"rows": 3})
