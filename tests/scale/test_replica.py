"""A replica without Ray: ready when it has been made, held to its plan, gone with its engine."""

from __future__ import annotations

import pytest

from langchain_gemma_jax import ClosedError, InputError, UnknownModelError
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.scale.plan import DeploymentPlan
from langchain_gemma_jax.scale.replica import Replica
from langchain_gemma_jax.server.readiness import Readiness


class OwnEngine:
    """An engine that can load, warm up and end."""

    running, waiting, oldest_wait_s = 3, 2, 1.5

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.did = failure, []

    def load(self, model: str, *, timeout: float | None) -> str:
        self.did.append(f"load {model}")
        if self.failure is not None:
            raise self.failure
        return model

    def warmup(self, served: str, *, max_context: int | None, progress: bool) -> None:
        self.did.append(f"warm {served} {max_context}")

    def report(self) -> OwnEngine:
        return self

    def close(self, timeout: float) -> None:
        self.did.append("close")


@pytest.fixture
def engine(monkeypatch):
    engine, settings = OwnEngine(), {}
    monkeypatch.setattr(process, "engine", lambda: engine)
    monkeypatch.setattr(process, "running_engine", lambda: None if "close" in engine.did else engine)
    monkeypatch.setattr(process, "configure", lambda **changes: settings.update(changes))
    engine.settings = settings
    return engine


def test_a_replica_is_ready_when_it_has_been_made_and_ends_with_its_engine(engine):
    replica = Replica(DeploymentPlan(model="sprout-s", max_context=512, waiting=4))
    assert engine.did == ["load sprout-s", "warm sprout-s 512"]
    assert engine.settings == {"max_waiting": 12, "max_context": 512}
    assert replica.app.readiness.pending == {}
    replica.app.readiness.begin()  # as Ray has the app begin: there is nothing left to do
    assert replica.load() == {"running": 3.0, "waiting": 2.0, "oldest_wait_s": 1.5}
    replica.check()
    replica.close()
    assert engine.did == ["load sprout-s", "warm sprout-s 512", "close"]
    with pytest.raises(ClosedError, match="has to be replaced"):
        replica.check()
    assert set(replica.load().values()) == {0.0}


def test_replicas_share_a_folder_of_prefixes(engine):
    Replica(DeploymentPlan(model="sprout-s", prefix_folder="/mnt/prefixes", prefix_key_file="/keys/prefixes"))
    assert engine.settings == {
        "max_waiting": 16, "prefix_folder": "/mnt/prefixes", "prefix_key_file": "/keys/prefixes"
    }  # fmt: skip


def test_weights_are_enough_if_that_is_said(engine):
    Replica(DeploymentPlan(model="sprout-s", warmup=False))
    assert engine.did == ["load sprout-s"]


def test_what_cannot_be_had_is_raised_where_ray_looks(engine, tmp_path):
    engine.failure = UnknownModelError("there is none")
    with pytest.raises(UnknownModelError):
        Replica(DeploymentPlan(model="nonsense"))
    with pytest.raises(InputError, match="cannot be read"):
        Replica(DeploymentPlan(model="sprout-s", api_key_file=str(tmp_path / "none")))
    readiness = Readiness(("nonsense",))
    with pytest.raises(UnknownModelError):
        readiness.make_ready()
    assert readiness.pending == {"nonsense": "weights"}
