"""Measure which recipe is fastest here. On CPU the answer differs by up to a hundredfold between JAX releases."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import jax
import jax.numpy as jnp

from langchain_gemma_jax.models.recipes.linear import linear
from langchain_gemma_jax.models.recipes.recipe import Form, Plan, Recipe

Timer: TypeAlias = Callable[[Plan, int], float]
"""Seconds that a plan takes for so many rows. Raises ``OutOfTimeError``."""

ONE, FEW = 1, 4
OUTPUTS, INPUTS = 16384, 640  # larger than most caches, where some cliffs begin
BUDGET_SECONDS = 0.6
LONG = 0.01  # a run this long needs no repeating: noise is small beside it
CLEARLY = 0.8  # another plan has to take at most this share of the plain one's time: noise must not flip the choice


class OutOfTimeError(Exception):
    """The budget was spent before everything was measured."""


def probe(dtype: str, timer: Timer | None = None, budget: float = BUDGET_SECONDS) -> tuple[Recipe, bool]:
    """The fastest recipe for a dtype on the default device, and whether there was time to measure everything.

    One row comes first, since that is what most steps of an agent have. A comparison that there was
    no time for leaves the plain form in place.
    """
    timer = timer or _Stopwatch(dtype, budget)
    plans = [Plan(out_first=True), Plan(out_first=False)]
    complete = False
    try:
        plans = [_faster(timer, ONE, plan, dataclasses.replace(plan, one_row=Form.PAD_ROWS)) for plan in plans]
        # Where a lone row is padded, several rows are the fast side of the cliff: nothing to try.
        plans = [
            plan
            if plan.one_row is Form.PAD_ROWS
            else _faster(timer, FEW, plan, dataclasses.replace(plan, few_rows=Form.EACH_ROW))
            for plan in plans
        ]
        best = plans[1] if _cost(plans[1], timer) < CLEARLY * _cost(plans[0], timer) else plans[0]
        complete = True
    except OutOfTimeError:
        best = plans[0]
    return Recipe(dtype, layers=best, embed=best, source="probe"), complete


def _faster(timer: Timer, rows: int, plain: Plan, other: Plan) -> Plan:
    return other if timer(other, rows) < CLEARLY * timer(plain, rows) else plain


def _cost(plan: Plan, timer: Timer) -> float:
    return timer(plan, ONE) + timer(plan, FEW) / FEW


class _Stopwatch:
    """Times plans on one made-up matrix; each measurement is made once."""

    def __init__(self, dtype: str, budget: float) -> None:
        self._deadline = time.perf_counter() + budget
        self._dtype = jnp.dtype(dtype)
        self._known: dict[tuple[Plan, int], float] = {}
        self._matrices: Mapping[bool, jax.Array] = {
            True: jnp.ones((OUTPUTS, INPUTS), self._dtype),
            False: jnp.ones((INPUTS, OUTPUTS), self._dtype),
        }

    def __call__(self, plan: Plan, rows: int) -> float:
        # Plans that run the same program for this many rows share a measurement.
        form = plan.one_row if rows == ONE else plan.few_rows
        key = (Plan(plan.out_first, form, form), rows)
        if key not in self._known:
            self._known[key] = min(self._runs(*key))
        return self._known[key]

    def _runs(self, plan: Plan, rows: int) -> Iterator[float]:
        matrix, x = self._matrices[plan.out_first], jnp.ones((rows, INPUTS), self._dtype)
        if time.perf_counter() > self._deadline:
            raise OutOfTimeError
        program = jax.jit(linear, static_argnums=2).lower(x, matrix, plan).compile()
        for _ in range(4):
            began = time.perf_counter()
            jax.block_until_ready(program(x, matrix))
            yield (took := time.perf_counter() - began)
            if took > LONG:
                return
