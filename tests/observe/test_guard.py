"""The four guards around anybody's JAX code: each sees its fault, says where, and sees nothing where there is none."""

from __future__ import annotations

import asyncio
import random
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.base.guards import GuardWarning, asking
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import GuardError, InputError
from langchain_gemma_jax.observe.jax_code.guard import SHAPES, guard
from tests.counted import lines

ONES = jax.device_put(np.ones(4, np.float32))
MEGABYTE = np.ones(2**18, np.float32)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    """No guard that a test does not name does anything."""
    monkeypatch.setattr(process, "_settings", Settings(guards="off"))


def on_device(length: int) -> jax.Array:
    return jax.device_put(np.ones(length, np.float32))


def run_in(g: guard, step, arguments) -> None:
    """Call a function some times at one place in a guard."""
    with g:
        for each in arguments:
            step(each)


def fresh():
    return jax.jit(lambda x: x * 2 + 1)


def test_a_function_that_is_compiled_again_at_the_same_place_is_told_of_with_its_line():
    def double(x):
        return x * 2

    step, lengths = jax.jit(double), [on_device(n) for n in (3, 3, 5)]
    step(on_device(4))  # before: the guard does not know of it
    g = guard(recompile="warn", app="agent")
    with pytest.warns(GuardWarning) as caught:
        run_in(g, step, lengths)
    (warning,) = caught
    said = str(warning.message)
    assert "recompile guard: XLA compiled jit(double)" in said or "recompile guard: XLA compiled double" in said
    assert "2 times at the same place" in said
    assert "test_guard.py:" in said
    assert "pad lengths" in said
    report = g.report()
    assert (report.compiles, report.trips_by_guard, report.trips[0].app) == (2, {"recompile": 1}, "agent")
    assert report.compile_s > 0


def test_raise_stops_the_block_and_nothing_stays_of_the_guard():
    step = fresh()
    with pytest.raises(GuardError, match="recompile guard"):
        run_in(guard(recompile="raise"), step, [on_device(2), on_device(3)])
    for n in (4, 5):
        step(on_device(n))
    assert asking.get().app == ""


def test_no_compile_at_all_can_be_asked_for():
    step, x = fresh(), on_device(6)
    step(x)
    with guard(recompile="raise", compiles=0):
        step(x)
    other = fresh()
    with pytest.raises(GuardError, match="1 programs in a block that may compile 0"):
        run_in(guard(recompile="raise", compiles=0), other, [x])


def test_operations_outside_jit_may_have_some_shapes():
    lengths = [on_device(n) for n in range(101, 103 + SHAPES)]
    with guard(recompile="callback", on_trip=lambda _: None) as g:
        for x in lengths:
            jnp.cos(x)
    (trip, *_) = g.report().trips
    assert "outside jax.jit" in trip.reason
    assert g.report().trips_by_guard == {"recompile": len(lengths) - SHAPES}


def test_every_copy_that_nobody_asked_for_is_told_of_with_its_bytes_and_line():
    step, x = jax.jit(lambda x, y: x + y), np.ones(4, np.float32)
    for _ in range(3):
        step(x, ONES)  # so that JAX has its shortcut
    with guard(transfer="callback", on_trip=lambda _: None, app="agent") as g:
        for _ in range(5):
            step(x, ONES)
            step(ONES, ONES)
            step(jax.device_put(x), ONES)
    report = g.report()
    assert report.not_watched == {}
    assert report.trips_by_guard == {"transfer": 5}
    assert {(trip.nbytes, trip.app) for trip in report.trips} == {(16, "agent")}
    assert all("test_guard.py:" in trip.site for trip in report.trips)
    assert (report.copies, report.implicit_copies, report.bytes_to_device) == (10, 5, 160)
    assert report.compiles == 0, "watching compiles nothing"
    with jax.transfer_guard("disallow"):
        step(ONES, ONES)
    assert g.report().copies == 10, "it ended with the block"


def test_a_copy_is_refused_before_it_is_made():
    step = fresh()
    with pytest.raises(GuardError, match="16 B of host memory were copied") as raised, guard(transfer="raise"):
        step(np.ones(4, np.float32))
    assert "jax.device_put" in str(raised.value)


def test_weights_that_are_placed_over_and_over_are_thrash():
    g = guard(residency="warn", placements=3)
    with pytest.warns(GuardWarning, match=r"1\.0 MiB on the device 4 times within a minute"):
        run_in(g, jax.device_put, [{"weights": MEGABYTE}] * 4)
    assert g.report().trips_by_guard == {"residency": 1}
    with guard(residency="raise", placements=3):
        jax.device_put([MEGABYTE] * 20)  # a model of many layers, once
        for _ in range(3):
            jax.device_put(MEGABYTE)


def test_a_deadline_that_compiling_uses_up_is_a_cold_start():
    step, x = fresh(), on_device(7)
    with guard(cold_start="warn", deadline=0.0) as g, pytest.warns(GuardWarning, match="the block may take 0 s"):
        step(x)
    assert g.report().trips_by_guard == {"cold_start": 1}
    with guard(cold_start="raise", deadline=0.0):
        step(x)  # there is nothing left to compile
    with guard(cold_start="raise", deadline=300):
        fresh()(x)


async def test_tasks_have_guards_of_their_own():
    step, x = jax.jit(lambda x: x - 2), np.ones(4, np.float32)

    async def agent(name: str, calls: int):
        with guard(transfer="callback", on_trip=lambda _: None, app=name) as g:
            for _ in range(calls):
                await asyncio.to_thread(step, x)
        return g.report()

    reports = await asyncio.gather(*(agent(f"agent {calls}", calls) for calls in range(4)))
    assert [(report.app, report.copies, len(report.trips)) for report in reports] == [
        (f"agent {calls}", calls, calls) for calls in range(4)
    ]


def test_a_guard_inside_another_one_says_it_and_both_count_it():
    step = fresh()
    with guard(transfer="raise") as outer, guard(transfer="callback", on_trip=lambda _: None) as inner:
        step(np.ones(4, np.float32))
    assert inner.report().trips_by_guard == outer.report().trips_by_guard == {"transfer": 1}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"recompile": "loud"}, "expected one of off, warn, raise, callback"),
        ({"transfer": "callback"}, "expected a function"),
        ({"deadline": -1}, "deadline: expected seconds"),
        ({"compiles": 1.5}, "compiles: expected a whole number"),
        ({"placements": True}, "placements: expected a whole number"),
        ({"budget": "much"}, "budget"),
        ({"app": 3}, "app: expected a name"),
    ],
)
def test_what_is_not_possible_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        guard(**arguments)


def test_one_guard_is_entered_once_at_a_time():
    with guard() as g:
        with pytest.raises(InputError, match="entered already"):
            g.__enter__()
        step = fresh()
        step(ONES)
    with g:
        pass
    assert g.report().compiles == 1


@pytest.mark.slow
def test_flax_is_code_like_any_other():
    from flax import linen

    model = linen.Dense(4)
    lengths = [on_device(n).reshape(1, n) for n in (3, 3, 5)]
    params = {x.shape: model.init(jax.random.key(0), x) for x in lengths}
    step = jax.jit(model.apply)
    with guard(recompile="callback", transfer="callback", app="flax", on_trip=lambda _: None) as g:
        for x in lengths:
            step(params[x.shape], x)
        step(params[1, 3], np.ones((1, 3), np.float32))
    report = g.report()
    assert report.trips_by_guard == {"recompile": 1, "transfer": 1}
    assert all("test_guard.py:" in trip.site for trip in report.trips)


def inject(kind: str, rng: random.Random) -> None:
    """Something that one guard watches for, and no other."""
    if kind == "recompile":
        step = fresh()
        for x in [on_device(n) for n in rng.sample(range(2, 4000), 2)]:
            step(x)
    elif kind == "transfer":
        WARM(np.full(rng.choice((2, 4)), rng.random(), np.float32))
    elif kind == "residency":
        for _ in range(2):
            jax.device_put(MEGABYTE)
    else:
        jax.jit(lambda x: x * rng.random())(ONES)  # in a block that may take no time


WARM = jax.jit(lambda x: x + 1)


@pytest.mark.long
def test_faults_are_told_of_with_their_kind_and_application_and_nothing_else_is():
    for n in (2, 4):
        WARM(np.ones(n, np.float32))
    faults(random.Random("faults"), 48)


@pytest.mark.slow
def test_500_faults():
    for n in (2, 4):
        WARM(np.ones(n, np.float32))
    faults(random.Random("500 faults"), 500)


def faults(rng: random.Random, count: int) -> None:
    kinds = ("recompile", "transfer", "residency", "cold_start")
    told = []
    for number in range(count):
        kind, app = rng.choice(kinds), f"app {rng.randrange(7)}"
        limits = {"deadline": 0.0} if kind == "cold_start" else {}
        policies = dict.fromkeys(kinds, "callback")
        with guard(**policies, **limits, app=app, placements=1, on_trip=told.append) as g:
            inject(kind, rng)
            step_that_is_fine()
        assert [(trip.guard, trip.app) for trip in told] == [(kind, app)], f"fault {number}: {told}"
        assert g.report().trips_by_guard == {kind: 1}
        told.clear()


def step_that_is_fine() -> None:
    WARM(ON_DEVICE)
    jax.device_get(ON_DEVICE)


ON_DEVICE = on_device(4)


def test_a_watched_call_takes_few_steps_more():
    """A watched call goes through Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        WARM(ON_DEVICE)
        with guard():
            WARM(ON_DEVICE)
            assert lines(lambda: WARM(ON_DEVICE)) < 2000
