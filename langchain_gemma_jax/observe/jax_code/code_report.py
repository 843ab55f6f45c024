"""A guard's counts of what happened in its block and what it cost, and the report of them."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from langchain_gemma_jax.charts import bars, moments, table
from langchain_gemma_jax.engine.api.report import placement_in_words
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.engine.base.events import Tripped

KEPT = 1000  # trips, and compiles
SAME_NAMES = (
    "xla_buckets_compiled", "xla_total_compile_s", "jit_cache_hits", "jit_cache_misses", "device_copies",
    "models_evicted",
)  # fmt: skip
LISTED = 8  # places where guards were tripped most often


class Sightings:
    """A guard's counts so far. Any thread may add to them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.compile_s = 0.0
        self.moments: list[tuple[float, float]] = []
        self.trips: list[Tripped] = []
        self.by_guard: Counter[str] = Counter()
        self._lock = threading.RLock()

    def add(self, **more: int) -> None:
        """Add to the counters of these names."""
        with self._lock:
            self.counts.update(more)

    def compiled(self, at: float, seconds: float, *, served: bool) -> int:
        """Count a compile, and return the number so far, including those that JAX's cache served."""
        with self._lock:
            self.counts["cache_hits" if served else "compiles"] += 1
            self.compile_s += seconds
            if len(self.moments) < KEPT:
                self.moments.append((at, seconds))
            return self.counts["cache_hits"] + self.counts["compiles"]

    def tripped(self, record: Tripped) -> None:
        """Count a trip, and keep it for the report while there is room."""
        with self._lock:
            self.by_guard[record.guard] += 1
            if len(self.trips) < KEPT:
                self.trips.append(record)

    def report(self, app: str, seconds: float, not_watched: Mapping[str, str], models_evicted: int = 0) -> CodeReport:
        """Return a report of the counts so far."""
        with self._lock:
            return CodeReport(
                app=app,
                seconds=seconds,
                compiles=self.counts["compiles"],
                compile_s=self.compile_s,
                cache_hits=self.counts["cache_hits"],
                copies=self.counts["copies"],
                implicit_copies=self.counts["implicit"],
                implicit_bytes=self.counts["implicit_bytes"],
                bytes_between_devices=self.counts["between"],
                bytes_to_device=self.counts["to_device"],
                bytes_to_host=self.counts["to_host"],
                compiles_over_time=tuple(self.moments),
                trips=tuple(self.trips),
                trips_by_guard=dict(self.by_guard),
                not_watched=dict(not_watched),
                models_evicted=models_evicted,
            )


@dataclass(frozen=True, kw_only=True)
class CodeReport:
    """A ``guard``'s counts. ``print(g.report())`` shows a table; a notebook shows charts too."""

    app: str
    seconds: float  # spent in the block
    compiles: int  # programs that XLA made
    compile_s: float
    cache_hits: int  # programs that JAX found on the disk instead
    copies: int  # of host arrays to a device, and of arrays from one device to another
    implicit_copies: int  # those of them that no jax.device_put asked for
    implicit_bytes: int
    bytes_to_device: int
    bytes_between_devices: int
    bytes_to_host: int  # read back, where the device has memory of its own
    compiles_over_time: tuple[tuple[float, float], ...]  # seconds since the block began, and what each took
    trips: tuple[Tripped, ...]  # the first thousand
    trips_by_guard: dict[str, int]
    not_watched: dict[str, str]  # guards that do not work with this version of JAX, and why
    models_evicted: int  # of this process's engine, while the block ran

    # The engine's report has the same names.

    @property
    def xla_buckets_compiled(self) -> int:
        """Programs that XLA compiled: each is a function for one bucket of sizes."""
        return self.compiles

    @property
    def xla_total_compile_s(self) -> float:
        return self.compile_s

    @property
    def jit_cache_hits(self) -> int:
        """Programs that came from the disk instead."""
        return self.cache_hits

    @property
    def jit_cache_misses(self) -> int:
        """Programs that had to be compiled."""
        return self.compiles

    @property
    def device_copies(self) -> int:
        """Copies to a device, those that were asked for included."""
        return self.copies

    @property
    def device_placement(self) -> str:
        """A sentence about implicit copies."""
        return placement_in_words(self.implicit_copies, self.implicit_bytes)

    def to_dict(self) -> dict[str, object]:
        """Return everything as numbers, texts, lists and dictionaries: what JSON can hold."""
        names = (*SAME_NAMES, "device_placement")
        return dataclasses.asdict(self) | {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        """Return the report for a notebook."""
        rest = max(0.0, self.seconds - self.compile_s)
        times = {"compiling": self.compile_s, "all else": rest}
        charts = [
            bars("Seconds", times, {name: f"{seconds:.2f} s" for name, seconds in times.items()}),
            moments("Compiles over time", self.compiles_over_time),
        ]
        return f"<div>{''.join(charts)}{table(self._rows())}</div>"

    def _rows(self) -> list[tuple[str, str]]:
        rows = [
            ("app", self.app or "(no name)"),
            ("time", f"{self.seconds:.2f} s, {self.compile_s:.2f} s of them compiling"),
            ("compiles", f"{self.compiles}, and {self.cache_hits} that were on the disk"),
            (
                "copies",
                f"{self.copies} to the device, {show_bytes(self.bytes_to_device)}; {self.implicit_copies} unasked for",
            ),
            ("placement", self.device_placement),
            *([("between devices", show_bytes(self.bytes_between_devices))] if self.bytes_between_devices else []),
            ("read back", show_bytes(self.bytes_to_host)),
            *((f"  not watched: {what}", why) for what, why in self.not_watched.items()),
            *((f"  guard {kind}", f"{count} trips") for kind, count in sorted(self.trips_by_guard.items())),
        ]
        first = {(each.guard, each.site): each for each in reversed(self.trips)}  # of each guard at each place
        often = Counter((each.guard, each.site) for each in self.trips).most_common(LISTED)
        return [
            *rows,
            *((f"    {count} times" if count > 1 else "    once", str(first[what])) for what, count in often),
        ]
