"""Exemplars: for each bucket of a latency's histogram, the trace of the request that was counted there last."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from langchain_gemma_jax.engine.base.events import Finished
from langchain_gemma_jax.engine.base.metrics import LATENCIES as BOUNDS
from langchain_gemma_jax.engine.base.metrics import MOST_SERIES, Who
from langchain_gemma_jax.observe.metrics.families import LATENCIES, LONGEST, Labels, who_labels


class Exemplar(NamedTuple):
    """A request that stands for those of its bucket."""

    trace: str  # its trace's id, in hexadecimal digits
    value: float
    at: float  # when it was over, in seconds since 1970


class Exemplars:
    """The exemplars of one engine. ``trace_engine`` adds them, and scrapes read them, each in a thread of its own."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Labels], dict[int, Exemplar]] = {}
        self._lock = threading.Lock()

    def note(self, record: Finished, trace: str) -> None:
        """Note a request that is over and belongs to a trace."""
        if record.failed:
            return  # it is in no histogram
        named = (*who_labels(Who(record.model, record.scope, record.app)), "cold" if record.cold else "steady")
        labels = tuple(label[:LONGEST] for label in named)  # as the metric has them
        times = {"first_token": record.timings.first_token_s, "total": record.timings.total_s}
        with self._lock:
            for name, value in times.items():
                key = (LATENCIES[name][0], labels)
                found = self._known.pop(key, {})
                found[bisect_left(BOUNDS, value)] = Exemplar(trace, value, time.time())
                self._known[key] = found
            while len(self._known) > 2 * len(times) * MOST_SERIES:
                del self._known[next(iter(self._known))]  # the one that was added to longest ago

    def of(self, metric: str, labels: Labels) -> Mapping[int, Exemplar]:
        """Return the exemplars of a metric with these labels, by the number of their bucket."""
        with self._lock:
            return dict(self._known.get((metric, labels), {}))
