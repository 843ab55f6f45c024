"""JAX's costs of a test, the limits on them, and the meter that counts them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.api.process import running_engine
from langchain_gemma_jax.engine.base.byte_sizes import show_bytes
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.observe.jax_code.guard import guard


@dataclass(frozen=True)
class CostsOfTest:
    """JAX's costs of a test, in its own code and in the engine."""

    compiles: int = 0
    compile_s: float = 0.0
    transfer_bytes: int = 0  # copied without an explicit jax.device_put or jax.device_get
    trips: dict[str, int] = field(default_factory=dict)  # of guards, by kind
    apps: dict[str, dict[str, int]] = field(default_factory=dict)  # those of each application that has a name


@dataclass(frozen=True)
class Limits:
    """Limits on JAX's costs of a test; None means no limit."""

    max_compiles: int | None = None
    max_transfer_bytes: int | None = None
    max_cold_start_s: float | None = None

    @classmethod
    def of(cls, given: tuple[object, ...], named: Mapping[str, object]) -> Limits:
        """Return the limits of a marker, from its arguments.

        Raises:
            InputError: the marker has other arguments, or a value that is no limit.
        """
        known = [each.name for each in dataclasses.fields(cls)]
        if given or set(named) - set(known):
            found = [*map(repr, given), *(name for name in named if name not in known)]
            raise InputError(f"expected {', '.join(f'{name}=...' for name in known)}, found {', '.join(found)}")
        for name, value in named.items():
            kinds = (int, float) if name == "max_cold_start_s" else (int,)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds) or not value >= 0):
                raise InputError(f"{name}: expected a number from 0, found {value!r}")
        return cls(**cast("Mapping[str, Any]", named))

    def passed_by(self, costs: CostsOfTest) -> Iterator[str]:
        """Yield a message for each limit that the costs exceed."""
        if self.max_compiles is not None and costs.compiles > self.max_compiles:
            yield (
                f"XLA compiled {costs.compiles} programs, and the test may have {self.max_compiles}. Give every call "
                "the same shapes: pad lengths to a few sizes, and warm those up in a fixture."
            )
        if self.max_transfer_bytes is not None and costs.transfer_bytes > self.max_transfer_bytes:
            yield (
                f"{show_bytes(costs.transfer_bytes)} were copied implicitly, and the test may have "
                f"{show_bytes(self.max_transfer_bytes)}. Use jax.device_put once, and keep what it returns."
            )
        if self.max_cold_start_s is not None and costs.compile_s > self.max_cold_start_s:
            yield (
                f"XLA compiled for {costs.compile_s:.2f} s, and the test may wait {self.max_cold_start_s:g} s. Warm up "
                "in a fixture, or keep the compile cache between runs."
            )


class Meter:
    """Counts what JAX costs while a ``with`` block lasts, under an application's name.

    Trips for applications that have a name of their own, such as ``ChatGemmaJax(app="billing")``, count too, and are
    also reported under that name.
    """

    def __init__(self, app: str) -> None:
        self._app = app
        self._guard = guard(app=app)
        self._engine = running_engine()

    def __enter__(self) -> Self:
        self._before = (0, 0.0) if self._engine is None else _compiled(self._engine)
        self._trips_before, self._bytes_before = _trips(self._engine), _unasked(self._engine)
        self._guard.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._guard.__exit__(kind, error, traceback)

    def costs(self) -> CostsOfTest:
        """Return the test's costs."""
        own, engine = self._guard.report(), running_engine()
        compiles, seconds = (0, 0.0) if engine is None else _compiled(engine)
        if engine is self._engine:
            compiles, seconds = compiles - self._before[0], seconds - self._before[1]
        # An engine counts the block's own trips too. One that was started in the test has counted since then.
        counted = _trips(engine) - (self._trips_before if engine is self._engine else Counter())
        for key, count in Counter((each.guard, each.app) for each in own.trips).items():
            counted[key] = max(counted[key], count)
        since = _unasked(engine) - (self._bytes_before if engine is self._engine else 0)
        nbytes = max(since, sum(each.nbytes for each in own.trips if each.guard == "transfer"))
        by_kind, apps = Counter[str](), dict[str, dict[str, int]]()
        for (kind, app), count in sorted(counted.items()):
            by_kind[kind] += count
            if app not in {"", self._app}:
                apps.setdefault(app, {})[kind] = count
        return CostsOfTest(
            own.compiles + compiles,
            own.compile_s + seconds,
            max(nbytes, by_kind["transfer"]),
            dict(by_kind),
            apps,
        )


def _unasked(engine: Engine | None) -> int:
    """Return the bytes that an engine, and guards beside it, saw copied without being asked for."""
    return 0 if engine is None else engine.guards.trips.implicit_bytes


def _trips(engine: Engine | None) -> Counter[tuple[str, str]]:
    """Return an engine's trips so far, by guard and application."""
    copied = {} if engine is None else engine.guards.trips.copied()
    return Counter({(kind, app): count for kind, apps in copied.items() for app, count in apps.items()})


def _compiled(engine: Engine) -> tuple[int, float]:
    """Return the number of programs that an engine compiled so far, and the seconds that took."""
    report = engine.report()
    return report.compiles, report.compile_s
