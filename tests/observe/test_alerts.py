"""Alerts fire and resolve, in a real Prometheus that scrapes a real engine which is driven into each state.

Rules look back for minutes and hours. Here each duration is a sixtieth: an hour is a minute. All else is as it is.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import jax
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.device.programs import Programs
from langchain_gemma_jax.engine.executables import libraries
from langchain_gemma_jax.engine.executables.library import Library, Tally
from langchain_gemma_jax.errors import BusyError, EngineError
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.observe.files import OBJECTIVE_RULES, RULES, text_of
from langchain_gemma_jax.observe.metrics.collector import start_metrics_server
from tests.engine.faults_support import Fault, greedy, injected, resource_exhausted
from tests.observe.prometheus import MISSING, PROMETHEUS, asked, query, scraping
from tests.observe.test_files import expressions
from tests.waiting import LONG

SECONDS = {"s": 1, "m": 60, "h": 3600}
SIXTIETH = 60


def hurried(rules: str) -> str:
    """Rules whose durations are a sixtieth."""

    def shorter(found: re.Match[str]) -> str:
        return f"{max(1, int(found[1]) * SECONDS[found[2]] // SIXTIETH)}s"

    def in_brackets(found: re.Match[str]) -> str:
        return "[" + re.sub(r"(\d+)([smh])", shorter, found[1]) + "]"

    rules = re.sub(r"\[([\d:smh]+)\]", in_brackets, rules)
    rules = re.sub(r"(?<=for: )(\d+)([smh])", shorter, rules)
    rules = re.sub(r"(?<=offset )(\d+)([smh])", shorter, rules)
    rules = rules.replace("interval: 30s", "interval: 1s").replace("< 900", "< 15")
    return rules.replace("standstill_seconds > 300", "standstill_seconds > 5")


class Ground:
    """An engine with a model, and the Prometheus that looks at it."""

    def __init__(self, engine: Engine, model: Model, port: int) -> None:
        self.engine, self.model, self.served, self.port = engine, model, engine.serve(model), port
        self.numbers = itertools.count(10)

    def ask(self, **options: object) -> None:
        """Have a request carried out, well or not."""
        with suppress(EngineError):
            self.engine.submit(self.served, [next(self.numbers) % 250 + 10, 11], greedy(2), **options).result()

    def asks(self, count: int, **options: object) -> None:
        for _ in range(count):
            self.ask(**options)

    def fires(self, alert: str) -> bool:
        return bool(query(self.port, f'ALERTS{{alertname="{alert}", alertstate="firing"}}'))

    def until(self, alert: str, *, fires: bool, work: Callable[[], object] = lambda: None) -> None:
        """Go on working until an alert fires, or does not any more."""
        while self.fires(alert) is not fires:
            work()
            time.sleep(0.25)

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Have the engine's thread do nothing meanwhile."""
        release = threading.Event()
        thread = threading.Thread(target=lambda: self.engine._owner.call(lambda: release.wait(LONG)))
        thread.start()
        try:
            yield
        finally:
            release.set()
            thread.join()


def device_memory(ground: Ground) -> Iterator[None]:
    (device,) = ground.engine.report().devices
    for share in (0.85, 0.1):
        budget = int(device.used / share)
        ground.engine.reconfigure(dataclasses.replace(ground.engine.settings, memory_budget=budget))
        yield


def compile_stuck(ground: Ground) -> Iterator[None]:
    with ground.engine._owner.standstills.here("compiling m read 16 512"):
        yield
    yield


def queue(ground: Ground) -> Iterator[None]:
    with ground.blocked():
        waiting = [ground.engine.submit(ground.served, [9, 10 + number], greedy(1)) for number in range(12)]
        yield
    for generation in waiting:
        generation.result()
    yield


def refuses(ground: Ground) -> Iterator[None]:
    ground.engine.reconfigure(dataclasses.replace(ground.engine.settings, max_waiting=1))
    with ground.blocked():
        taken = ground.engine.submit(ground.served, [9, 9], greedy(1))
        with pytest.raises(BusyError):
            ground.engine.submit(ground.served, [9, 9], greedy(1))
    taken.result()
    ground.engine.reconfigure(dataclasses.replace(ground.engine.settings, max_waiting=64))
    yield
    yield


def nan_scores(ground: Ground) -> Iterator[None]:
    model = ground.model
    norm = jax.device_put(np.full(model.config.width, np.nan, np.float32), model.device)
    served = ground.engine.serve(dataclasses.replace(model, params=model.params | {"final_norm": norm}))
    with suppress(EngineError):
        ground.engine.submit(served, [5, 6, 7], greedy(1)).result()
    ground.engine.unload(served)
    yield
    yield


def out_of_memory(ground: Ground) -> Iterator[None]:
    with injected(Fault(resource_exhausted, lambda number, *_: number == 1)):
        ground.ask()
    yield
    yield


def guard_tripped(ground: Ground) -> Iterator[None]:
    ground.engine.guards.trip("transfer", "for this test", None)
    yield
    yield


WITHOUT_WORK = {
    "GemmaJaxDeviceMemory": device_memory,
    "GemmaJaxCompileStuck": compile_stuck,
    "GemmaJaxQueue": queue,
    "GemmaJaxRefuses": refuses,
    "GemmaJaxNanScores": nan_scores,
    "GemmaJaxOutOfMemory": out_of_memory,
    "GemmaJaxGuardTripped": guard_tripped,
}


def cold(ground: Ground) -> None:
    """A request whose programs are as if they had never run."""
    (runner,) = ground.engine._owner.models.runners.values()
    ground.engine._owner.call(runner.device.seen.clear)
    ground.ask()


def missed(ground: Ground) -> None:
    """A program that was not on the disk."""
    ground.engine._loader.libraries.tally.miss()


def found(ground: Ground) -> None:
    ground.engine._loader.libraries.tally.hit(1.0)


def half_fail(ground: Ground) -> None:
    ground.asks(4)
    ground.asks(4, timeout=0.0)


BURNS: dict[str, tuple[Callable[[Ground], object], Callable[[Ground], object]]] = {
    "GemmaJaxAvailabilityBurns": (half_fail, lambda ground: ground.asks(8)),
    "GemmaJaxColdStartsBurns": (lambda ground: [cold(ground) for _ in range(4)], lambda ground: ground.asks(8)),
    "GemmaJaxCacheHitsBurns": (
        lambda ground: [missed(ground) for _ in range(9)],
        lambda ground: [found(ground) for _ in range(9)],
    ),
}  # fmt: skip


@pytest.mark.skipif(not PROMETHEUS, reason=MISSING)
@pytest.mark.slow
def test_alerts_fire_and_resolve_and_every_panel_has_data(running_of, tiny_model, tmp_path: Path, monkeypatch):
    pytest.importorskip("prometheus_client", reason="an extra")

    def fresh(programs: Programs, tally: Tally, *_: object) -> Library:
        return Library(programs, None, tally, name="a model")

    monkeypatch.setattr(libraries, "library_of", fresh)  # so that compiles are this engine's
    engine = running_of(guards="callback", on_trip=lambda _: None, max_waiting=64, memory_budget=10**9)
    for name in (RULES, OBJECTIVE_RULES):
        (tmp_path / name).write_text(hurried(text_of(name)))
    server = start_metrics_server(0)
    with scraping(server.url, [RULES, OBJECTIVE_RULES], tmp_path) as port:
        ground = Ground(engine, tiny_model, port)
        ground.asks(3)
        while asked(port, "sum(gemma_jax_requests_total)") < 3:
            time.sleep(0.25)
        while query(port, "gemma_jax:deploying > 0"):  # its first quarter of a minute is excused
            time.sleep(0.25)
        for alert, drive in WITHOUT_WORK.items():
            states = drive(ground)
            assert not ground.fires(alert), alert
            for fires in (True, False):
                next(states)
                ground.until(alert, fires=fires)
        for alert, (harm, heal) in BURNS.items():
            assert not ground.fires(alert), alert
            ground.until(alert, fires=True, work=lambda harm=harm: harm(ground))
            ground.until(alert, fires=False, work=lambda heal=heal: heal(ground))
        ground.asks(20)
        ground.asks(1, timeout=0.0)
        empty = [each for each in expressions() if not drawn(ground, each)]
        assert empty == [each for each in empty if "model_loads" in each or "model_evictions" in each]
        server.close()
        ground.until("GemmaJaxDown", fires=True)
        server = start_metrics_server(int(server.url.split(":")[2].split("/")[0]))
        ground.until("GemmaJaxDown", fires=False)
    server.close()


def drawn(ground: Ground, expression: str) -> list:
    """Return the first points of a panel; none if none come in time."""
    plain = expression.replace("$__rate_interval", "30s").replace("$__range", "1h")
    plain = re.sub(r"\$(job|instance|app)", ".*", plain)
    for _ in range(40):
        if points := query(ground.port, plain):
            return points
        ground.asks(1)
        time.sleep(0.25)
    return []
