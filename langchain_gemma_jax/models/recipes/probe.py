"""Measurement of the fastest recipe. On CPU, a form's time changes by up to a hundredfold between JAX releases."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import Form, Plan

ONE, FEW, MOST_OF_FEW, MANY = 1, 4, 8, 128
BETWEEN_FEW_AND_MANY = (16, 32, 64)  # rows, as chunks of prompts have them
BUDGET_SECONDS = 2.0
RUNS, ENOUGH = 12, 0.02  # the most runs of a product, and the seconds after which no more are needed
CLEARLY = 0.8  # another plan has to take at most this share of the plain one's time, so that noise does not decide
BY_KERNEL = Plan(one_row=Form.KERNEL, few_rows=Form.KERNEL)
_ONE_PRODUCT = Plan()
SOMEWHAT = 0.95  # the same for kernels, which also have no slow cases for several rows


class Matrix(Enum):
    """The matrices of the measurement: some products are slow only with a matrix much larger than the caches."""

    LAYER = (4096, 1024)
    EMBED = (32768, 640)


Timer: TypeAlias = Callable[[Matrix, Plan, int], float]
"""Returns the seconds that a plan takes for a number of rows. Raises ``OutOfTimeError``."""


class OutOfTimeError(Exception):
    """The budget was spent before everything was measured."""


def probe(
    default: Recipe,
    timer: Timer | None = None,
    budget: float = BUDGET_SECONDS,
    *,
    with_kernels: bool = False,
    kernels_are_fast: bool = False,
) -> tuple[Recipe, bool]:
    """Return the fastest recipe on the default device, and True if there was time to measure everything.

    The default is kept wherever nothing else is clearly faster or the time is up. One row is measured
    first, since most steps of an agent have one. Where kernels run, they are compared with the default first, and the
    other forms are measured only if kernels lose. Kernels that are known to be fast are kept unless they clearly lose,
    and when the time is up: no release of XLA is as fast for several rows, and some are far slower for one.
    """
    timer = timer or _Stopwatch(default.dtype, budget)
    if not with_kernels:
        return _by_xla(default, timer)
    limit = 1 / CLEARLY if kernels_are_fast else SOMEWHAT
    try:
        chosen = _with_kernels(default, timer, limit)
        if chosen.layers != BY_KERNEL or chosen.embed != BY_KERNEL:
            by_xla, complete = _by_xla(default, timer)
            return _with_kernels(by_xla, timer, limit), complete
    except OutOfTimeError:
        return dataclasses.replace(default, layers=BY_KERNEL, embed=BY_KERNEL) if kernels_are_fast else default, False
    return _with_many_rows(chosen, timer)


def _with_kernels(recipe: Recipe, timer: Timer, limit: float) -> Recipe:
    """Return the recipe, with kernels for those matrices where they take less than ``limit`` times the plan's time."""

    def better(matrix: Matrix, plan: Plan) -> Plan:
        return BY_KERNEL if _cost(timer, BY_KERNEL, matrix) < limit * _cost(timer, plan, matrix) else plan

    layers, embed = better(Matrix.LAYER, recipe.layers), better(Matrix.EMBED, recipe.embed)
    return dataclasses.replace(recipe, layers=layers, embed=embed, source="probe")


def _with_many_rows(recipe: Recipe, timer: Timer) -> tuple[Recipe, bool]:
    """Return the recipe, with kernels up to the number of rows where they are faster; and True if there was time.

    Where XLA's product is faster for a long prompt, it may be for a short one too: XLA uses a processor's matrix
    instructions if it has them.
    """
    plan = dataclasses.replace(recipe.layers, many_rows=Form.KERNEL)
    most = MOST_OF_FEW
    try:
        if timer(Matrix.LAYER, plan, MANY) < SOMEWHAT * timer(Matrix.LAYER, recipe.layers, MANY):
            return dataclasses.replace(recipe, layers=plan), True
        for rows in BETWEEN_FEW_AND_MANY:
            if timer(Matrix.LAYER, _ONE_PRODUCT, rows) < CLEARLY * timer(Matrix.LAYER, BY_KERNEL, rows):
                break
            most = rows
    except OutOfTimeError:
        return recipe, False
    return dataclasses.replace(recipe, layers=dataclasses.replace(recipe.layers, kernel_rows=most)), True


def _by_xla(default: Recipe, timer: Timer) -> tuple[Recipe, bool]:
    layers = [default.layers, dataclasses.replace(default.layers, out_first=not default.layers.out_first)]
    embed, complete, turned = default.embed, False, default.embed.few_rows is Form.WEIGHTS_FIRST
    try:
        layers = [_best_one_row(timer, plan) for plan in layers]
        layers = [_best_few_rows(timer, Matrix.LAYER, plan) for plan in layers]
        if _cost(timer, layers[1]) < CLEARLY * _cost(timer, layers[0]):
            layers.reverse()
        plain = dataclasses.replace(layers[0], few_rows=Form.DOT if turned else default.embed.few_rows)
        plain = _best_few_rows(timer, Matrix.EMBED, plain)
        embed = _still_turned(timer, embed, plain) if turned else _weights_first(timer, plain)
        complete = True
    except OutOfTimeError:
        embed = embed if turned else dataclasses.replace(layers[0], few_rows=embed.few_rows)
    return dataclasses.replace(default, layers=layers[0], embed=embed, source="probe"), complete


def _best_one_row(timer: Timer, plan: Plan) -> Plan:
    other = Form.DOT if plan.one_row is Form.PAD_ROWS else Form.PAD_ROWS
    return _faster(timer, Matrix.LAYER, ONE, plan, dataclasses.replace(plan, one_row=other))


def _best_few_rows(timer: Timer, matrix: Matrix, plan: Plan) -> Plan:
    if plan.one_row is Form.PAD_ROWS:  # several rows are the fast side of this cliff
        return dataclasses.replace(plan, few_rows=Form.DOT)
    other = Form.DOT if plan.few_rows is Form.EACH_ROW else Form.EACH_ROW
    return _faster(timer, matrix, FEW, plan, dataclasses.replace(plan, few_rows=other))


def _still_turned(timer: Timer, turned: Plan, plain: Plan) -> Plan:
    """Return the plan that is known to be fast with this release, unless another is clearly faster on this machine."""
    cost = {plan: timer(Matrix.EMBED, plan, ONE) + timer(Matrix.EMBED, plan, MOST_OF_FEW) for plan in (turned, plain)}
    return plain if cost[plain] < CLEARLY * cost[turned] else turned


def _weights_first(timer: Timer, plan: Plan) -> Plan:
    """Return a plan with weights first for the embedding, if several rows get cheaper by it and one row no dearer."""
    if plan.one_row is Form.PAD_ROWS:
        return plan
    turned = dataclasses.replace(plan, out_first=True, few_rows=Form.WEIGHTS_FIRST)
    if _faster(timer, Matrix.EMBED, MOST_OF_FEW, plan, turned) is plan:
        return plan
    if plan.out_first or CLEARLY * timer(Matrix.EMBED, turned, ONE) < timer(Matrix.EMBED, plan, ONE):
        return turned
    return plan


def _faster(timer: Timer, matrix: Matrix, rows: int, plain: Plan, other: Plan) -> Plan:
    return other if timer(matrix, other, rows) < CLEARLY * timer(matrix, plain, rows) else plain


def _cost(timer: Timer, plan: Plan, matrix: Matrix = Matrix.LAYER) -> float:
    return timer(matrix, plan, ONE) + timer(matrix, plan, FEW) / FEW


class _Stopwatch:
    """Timer of plans on made-up matrices. Each measurement is made once."""

    def __init__(self, dtype: str, budget: float) -> None:
        self._deadline = time.perf_counter() + budget
        self._dtype = jnp.dtype(dtype)
        self._known: dict[tuple[Matrix, Plan, int], float] = {}

    def __call__(self, matrix: Matrix, plan: Plan, rows: int) -> float:
        # Plans that run the same program for this many rows share a measurement.
        form = plan.form(rows)
        key = (matrix, Plan(plan.out_first, form, form, form), rows)
        if key not in self._known:
            try:
                self._known[key] = min(self._runs(*key))
            except jax.errors.JaxRuntimeError:  # some releases have no such product
                self._known[key] = math.inf
        return self._known[key]

    def _runs(self, matrix: Matrix, plan: Plan, rows: int) -> Iterator[float]:
        if time.perf_counter() > self._deadline:
            raise OutOfTimeError
        outputs, inputs = matrix.value
        # Explicit transfers: the caller may have disallowed implicit ones.
        weight = jax.device_put(np.ones((outputs, inputs) if plan.out_first else (inputs, outputs), self._dtype))
        x = jax.device_put(np.ones((rows, inputs), self._dtype))
        program = jax.jit(linear, static_argnums=2).lower(x, weight, plan).compile()
        spent = 0.0
        for again in range(RUNS):
            began = time.perf_counter()
            jax.block_until_ready(program(x, weight))
            yield (took := time.perf_counter() - began)
            spent += took
            if again and spent > ENOUGH:  # never after the first run, which reads untouched memory
                return
