"""What guards and metrics cost: decode steps with them and without, in turns.

    python benchmarks/guards.py --model sprout-m --rounds 9

Without: guards off, nothing counted about tokens and steps, nobody scrapes. With: guards on "warn", all that is
counted, a metrics server that is scraped once a second, a reader of trips. The difference is taken of the engine's own
time in Python, which is all that they can change, and set against what a step takes. The lower quartile of the rounds
counts: other work on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from langchain_gemma_jax import Ladders, Sampling, configure, engine, start_metrics_server
from langchain_gemma_jax.engine.base.metrics import Histogram, Series

TOKENS = 200
PROMPT = [2, *range(300, 340)]


def main() -> None:
    """Measure, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sprout-m")
    parser.add_argument("--rounds", type=int, default=9)
    asked = parser.parse_args()
    configure(ladders=Ladders(chunks=(16, 64), capacities=(512,), rows=(1,)), drafts=False, guards="off")
    served = engine().load(asked.model)
    run(served)
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(2 * asked.rounds):
        watched = bool(number % 2)
        with everything() if watched else nothing():
            found[watched].append(run(served))
    quartiles = {watched: statistics.quantiles([each for each, _ in rounds]) for watched, rounds in found.items()}
    host = {watched: each[0] for watched, each in quartiles.items()}
    step = min(wall for rounds in found.values() for _, wall in rounds)
    print(
        f"{asked.model}: a step takes {step * 1e6:.0f} µs at best. The engine's own Python takes "
        f"{host[False] * 1e6:.1f} µs of it without guards and metrics, {host[True] * 1e6:.1f} µs with them: "
        f"{(host[True] - host[False]) / step:+.2%} of a step"
    )


def run(served: object) -> tuple[float, float]:
    """Return the seconds of the engine's own Python for each step, and the seconds that a step took."""
    before, began = engine().report(), time.perf_counter()
    engine().submit(served, PROMPT, Sampling(max_tokens=TOKENS, ignore_eos=True)).result()  # type: ignore[arg-type]
    wall, after = time.perf_counter() - began, engine().report()
    made = after.steps - before.steps
    return (after.host_s - before.host_s) / made, wall / made


@contextmanager
def everything() -> Iterator[None]:
    """Have guards warn, and metrics read."""
    configure(guards="warn")
    server, over, trips = start_metrics_server(0, vllm=True), threading.Event(), []
    stop = engine().on_trip(trips.append)

    def scrape() -> None:
        while not over.wait(1.0):
            urllib.request.urlopen(server.url, timeout=10).read()  # noqa: S310  this process itself

    scraper = threading.Thread(target=scrape)
    scraper.start()
    try:
        yield
    finally:
        over.set()
        scraper.join()
        server.close()
        stop()


@contextmanager
def nothing() -> Iterator[None]:
    """Have nothing counted that metrics are made of."""
    configure(guards="off")
    with ExitStack() as stack:
        for kind in (Histogram, Series):
            stack.enter_context(mock.patch.object(kind, "add", _count_nothing))
        yield


def _count_nothing(*_: object) -> None:
    """Stand for what counts."""


if __name__ == "__main__":
    main()
