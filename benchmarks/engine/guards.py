"""Time what guards and metrics cost: decode steps with them and without, in turns.

    python benchmarks/engine/guards.py --model sprout-m --rounds 30

Without: guards off, nothing counted about tokens and steps. With: guards on "warn", all that is counted, a reader of
trips, a metrics server. The difference is taken of the engine's own time in Python, which is all that they can change,
between two rounds that follow one another, and set against what a step takes: the median of the pairs, with the
quartiles to say how sure it is. A scrape is timed by itself, in processor time of both its ends, and added as often as
Prometheus asks by default.
"""

from __future__ import annotations

import argparse
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from langchain_gemma_jax import Ladders, Sampling, Served, configure, engine, start_metrics_server
from langchain_gemma_jax.engine.base.metrics import Histogram, Series

TOKENS = 200
SCRAPES = 20
SCRAPED_EVERY = 15.0  # seconds: what Prometheus's own example asks for
PROMPT = [2, *range(300, 340)]


def main() -> None:
    """Measure, and print three lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="sprout-m")
    parser.add_argument("--rounds", type=int, default=30)
    asked = parser.parse_args()
    configure(ladders=Ladders(chunks=(16, 64), capacities=(512,), rows=(1,)), drafts=False, guards="off")
    served = engine().load(asked.model)
    run(served)
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for number in range(asked.rounds):
        for watched in (True, False) if number % 2 else (False, True):  # neither is always the second
            with everything() if watched else nothing():
                found[watched].append(run(served))
    step = statistics.median(wall for _, wall in found[False])
    more = [with_[0] - without[0] for with_, without in zip(found[True], found[False], strict=True)]
    lower, middle, upper = statistics.quantiles(more)
    scrape = seconds_of_a_scrape()
    own = statistics.median(host for host, _ in found[False])
    print(f"{asked.model}: a step takes {step * 1e6:.0f} µs, {own * 1e6:.0f} of it the engine's own Python.")
    print(
        f"Guards and counting add {middle * 1e6:+.1f} µs to it ({lower * 1e6:+.1f} to {upper * 1e6:+.1f} in half of "
        f"{asked.rounds} pairs): {middle / step:+.2%} of a step."
    )
    share = scrape / SCRAPED_EVERY
    print(
        f"A scrape takes {scrape * 1e3:.1f} ms of processor time, every {SCRAPED_EVERY:.0f} s {share:+.2%} of a core. "
        f"Together: {middle / step + share:+.2%}."
    )


def run(served: Served) -> tuple[float, float]:
    """Return the seconds of the engine's own Python for each step, and the seconds that a step took."""
    before, began = engine().report(), time.perf_counter()
    engine().submit(served, PROMPT, Sampling(max_tokens=TOKENS, ignore_eos=True)).result()
    wall, after = time.perf_counter() - began, engine().report()
    made = after.steps - before.steps
    return (after.host_s - before.host_s) / made, wall / made


def seconds_of_a_scrape() -> float:
    """Return what one costs, with all names that there are."""
    server = start_metrics_server(0, vllm=True)
    try:
        began = time.process_time()
        for _ in range(SCRAPES):
            urllib.request.urlopen(server.url, timeout=10).read()  # noqa: S310  this process itself
        return (time.process_time() - began) / SCRAPES
    finally:
        server.close()


@contextmanager
def everything() -> Iterator[None]:
    """Have guards warn, and all counted that metrics are made of."""
    configure(guards="warn")
    server, trips = start_metrics_server(0, vllm=True), list[object]()
    stop = engine().on_trip(trips.append)
    try:
        yield
    finally:
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
