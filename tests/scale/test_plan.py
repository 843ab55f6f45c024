"""A deployment's plan: read from texts as from values, and what follows from it."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import InputError
from langchain_gemma_jax.scale.plan import ROWS, SHUTDOWN_SECONDS, DeploymentPlan


def test_a_command_line_says_the_same_as_values():
    texts = {"model": "sprout-s", "replicas": "2", "max_replicas": "4", "call_s": "60", "warmup": "no", "gpus": "0.5"}
    values = {"model": "sprout-s", "replicas": 2, "max_replicas": 4, "call_s": 60.0, "warmup": False, "gpus": 0.5}
    assert DeploymentPlan.read(texts) == DeploymentPlan.read(values) == DeploymentPlan(**values)
    assert DeploymentPlan.read({"max_context": None, "api_key_file": "/keys"}).api_key_file == "/keys"


def test_a_replica_takes_what_its_engine_computes_and_what_may_wait(monkeypatch):
    assert ROWS == 8
    assert DeploymentPlan().ongoing == 16
    assert DeploymentPlan(waiting=0).ongoing == 8
    # No call outlives its replica: whoever removes one waits for longer than a call may take.
    assert DeploymentPlan(call_s=60).drain_s == 60 + SHUTDOWN_SECONDS
    assert (DeploymentPlan().named_model, DeploymentPlan().deployment) == ("sprout-m", "sprout-m")
    monkeypatch.setenv("GEMMA_JAX_MODEL", "google/gemma-3-1b-it")
    assert DeploymentPlan().deployment == "gemma-3-1b-it"
    assert DeploymentPlan(model="/models/my gemma#2/").deployment == "my-gemma-2"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"modell": "x"}, "no argument is called modell. There are: model, replicas"),
        ({"replicas": "two"}, "replicas: expected a whole number, found 'two'"),
        ({"replicas": 0}, "replicas: expected a number from 1"),
        ({"replicas": None}, "replicas: expected a whole number, found None"),
        ({"call_s": "nan"}, "call_s: expected a number from 1"),
        ({"warmup": "perhaps"}, "warmup: expected true or false"),
        ({"replicas": 3, "max_replicas": 2}, "max_replicas: expected at least replicas, which is 3, found 2"),
        ({"waiting": -1}, "waiting: expected a number from 0"),
    ],
)
def test_what_is_no_plan_is_refused(arguments, says):
    with pytest.raises(InputError, match=says):
        DeploymentPlan.read(arguments)
