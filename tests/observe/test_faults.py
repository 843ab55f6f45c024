"""Faults in the engine are told of by the right guard, for the right application; and nothing else is told of."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.events import ModelEvicted, ModelLoaded, Tripped
from langchain_gemma_jax.engine.base.guards import KINDS, CompileCost
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.executables.remembered import CompileCosts
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.errors import EngineError, GuardError, InputError
from tests.engine.faults_support import greedy
from tests.engine.tiny import CONTEXT


class Ground:
    """An engine with a model, and what its guards told."""

    def __init__(self, engine: Engine, served: Served) -> None:
        self.engine, self.served = engine, served
        self.told: list[Tripped] = []
        engine.on_trip(self.told.append)
        self.ask("warm", timeout=60)
        self.ask("warm", timeout=60)  # each program has run
        (self.runner,) = engine._owner.models.runners.values()

    def ask(self, app: str, *, timeout: float | None = None, **options: object) -> None:
        self.engine.submit(self.served, [50, 51, 52], greedy(2), app=app, timeout=timeout, **options).result()

    def in_the_loop(self, change: Callable[[], object]) -> None:
        self.engine._owner.call(change)

    def recompile(self, app: str) -> None:
        """A program is not on the ladders."""
        device, step = self.runner.device, ("step", 1, CONTEXT)
        bound = device.bound
        self.in_the_loop(lambda: (setattr(device, "bound", bound - {step}), device.seen.discard(step)))
        try:
            self.ask(app)
        finally:
            self.in_the_loop(lambda: setattr(device, "bound", bound))

    def transfer(self, app: str) -> None:
        """A program gets what is on the host."""
        device, put = self.runner.device, self.runner.device.put

        def forgotten(tree, *, for_step=False):
            device.put = put  # once
            return tree

        self.in_the_loop(lambda: setattr(device, "put", forgotten))
        self.ask(app, scope=f"new {random.random()}")
        assert device.put == put

    def residency(self, app: str) -> None:
        """A model comes back again and again; or more is there than may be."""
        if random.random() < 0.5:
            for _ in range(self.engine.settings.loads_per_minute + 1):
                self.engine.events.publish(ModelEvicted(self.served.name, 1, 0.0))
                self.engine.events.publish(ModelLoaded(self.served.name, 0.0))
            self.ask(app)
        else:
            device, before = self.runner.device, self.runner.device.excess
            device.excess = lambda: 10_000
            try:
                self.ask(app)
            finally:
                device.excess = before

    def cold_start(self, app: str) -> None:
        """The needed program is not there, and takes longer to compile than there is time."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Library, "cold_cost", lambda *_: CompileCost(120.0))
            self.ask(app, timeout=60)


@pytest.fixture
def ground(running_of, tiny_model) -> Ground:
    engine = running_of(guards="callback", on_trip=lambda _: None)
    return Ground(engine, engine.serve(tiny_model))


def inject(ground: Ground, count: int, seed: str) -> None:
    rng = random.Random(seed)
    random.seed(seed)
    for number in range(count):
        kind, app = rng.choice(KINDS), f"app {rng.randrange(20)}"
        for _ in range(rng.randrange(3)):
            ground.ask(f"quiet {rng.randrange(20)}", timeout=60)
        ground.told.clear()
        getattr(ground, kind)(app)
        ground.ask(f"quiet {rng.randrange(20)}")
        assert [(trip.guard, trip.app) for trip in ground.told] == [(kind, app)], f"fault {number}: {ground.told}"
    report = ground.engine.report()
    assert sum(report.guard_trips.values()) == count
    assert not any(app.startswith("quiet") for apps in report.trips_by_app.values() for app in apps)


@pytest.mark.long
def test_faults_are_told_of_with_their_kind_and_application(ground):
    inject(ground, 100, "faults")


@pytest.mark.slow
def test_500_faults(ground):
    inject(ground, 500, "500 faults")


def test_a_request_may_refuse_what_others_only_warn_of(ground):
    for kind in KINDS:
        fault = getattr(ground, kind)
        ask = ground.ask
        ground.ask = partial(ask, guards={kind: "raise"})
        with pytest.raises(GuardError, match=f"{kind} guard"):
            fault("strict")
        ground.ask = partial(ask, guards="off")
        before = len(ground.told)
        ground.told.clear()
        ground.ask("lenient")
        assert before == 1
        assert ground.told == []
        ground.ask = ask
    assert dict(ground.engine.report().trips_by_app) == {kind: {"strict": 1} for kind in KINDS}
    assert set(ground.engine.report().series) >= {("local and global", "", "strict")}


def test_what_a_guard_is_around_gets_its_name_and_policies(ground):
    from langchain_gemma_jax.observe.jax_code.guard import guard

    with guard(cold_start="raise", app="of the block"), pytest.raises(GuardError, match="cold_start guard"):
        ground.cold_start("")
    ground.cold_start("its own")
    assert [trip.app for trip in ground.told] == ["of the block", "its own"]
    with pytest.raises(InputError, match="expected names"):
        ground.ask("x", guards={"nothing": "warn"})


def test_a_cold_request_is_refused_before_anything_is_compiled(running_of, tiny_model, monkeypatch):
    engine = running_of(guards={"cold_start": "raise"})
    served = engine.serve(tiny_model)
    (runner,) = engine._owner.models.runners.values()
    monkeypatch.setattr(runner.library._tally, "costs", CompileCosts())  # none of what earlier tests compiled
    runner.library._tally.costs.add("another model", "step", 500.0)
    runner.library._made.clear()
    with pytest.raises(GuardError, match=r"deadline is in \d+\.\d+ s, and compiling what the request needs takes"):
        engine.submit(served, [60, 61], greedy(2), timeout=90).result()
    assert engine.submit(served, [60, 61], greedy(2), timeout=2000).result().generated_tokens == 2


def test_no_error_of_the_engine_is_a_guards(ground):
    with pytest.raises(EngineError):
        ground.ask("late", timeout=0)
    assert ground.told == []
