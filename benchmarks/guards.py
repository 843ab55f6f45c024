"""What guards and metrics cost: decode steps with them and without, in turns.

    python benchmarks/guards.py --model sprout-m --rounds 9

Without: guards off, nothing counted about tokens and steps, nobody scrapes. With: guards on "warn", all that is
counted, a metrics server that is scraped once a second, a reader of trips. The difference is taken of the CPU time of
the engine's own thread, which other work on the machine changes least, and set against what a step takes.
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
    cpu = {watched: statistics.median(each for each, _ in rounds) for watched, rounds in found.items()}
    step = min(wall for rounds in found.values() for _, wall in rounds)
    more = cpu[True] - cpu[False]
    print(
        f"{asked.model}: a step takes {step * 1e6:.0f} µs at best. The engine's own thread takes "
        f"{cpu[False] * 1e6:.1f} µs of CPU time a step without guards and metrics, {cpu[True] * 1e6:.1f} µs with them: "
        f"{more / step:+.2%} of a step"
    )


def run(served: object) -> tuple[float, float]:
    """Return the CPU seconds of the engine's thread for each step, and the seconds that a step took."""
    owner = engine()._owner  # noqa: SLF001  whose thread is measured
    before, steps, began = owner.call(time.thread_time), engine().report().steps, time.perf_counter()
    engine().submit(served, PROMPT, Sampling(max_tokens=TOKENS, ignore_eos=True)).result()  # type: ignore[arg-type]
    wall, made = time.perf_counter() - began, engine().report().steps - steps
    return (owner.call(time.thread_time) - before) / made, wall / made


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
