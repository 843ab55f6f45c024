"""Every form and layout of a product gives the numbers of a plain one."""

from __future__ import annotations

import dataclasses
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.weights import Form, Plan

PLANS = [Plan(*choice) for choice in product((True, False), Form, Form)]
SHAPES = [(1,), (1, 1), (2,), (2, 4), (Plan.FEW_ROWS + 1,), (3, 5)]
OUT, IN = 7, 5


def operands(*shape, dtype=np.float32):
    random = np.random.default_rng(len(shape))
    # Whole numbers: products and sums are exact in every dtype, so equal means equal.
    x, weight = random.integers(-4, 5, (*shape, IN)), random.integers(-4, 5, (OUT, IN))
    return (
        x.astype(np.float32),
        weight.astype(np.float32),
        jnp.asarray(x, jnp.float32),
        jnp.asarray(weight).astype(dtype),
    )


@jax.jit
def by_every_plan(x, weight):
    return [linear(x, weight if plan.out_first else weight.T, plan) for plan in PLANS]


@pytest.mark.long
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_plan_gives_the_same_numbers(dtype):
    for shape in SHAPES:
        x, weight, jax_x, jax_weight = operands(*shape, dtype=dtype)
        for plan, found in zip(PLANS, by_every_plan(jax_x, jax_weight), strict=True):
            assert found.dtype == jnp.float32
            np.testing.assert_array_equal(found, x @ weight.T, err_msg=f"{shape}, {plan}")


@pytest.mark.parametrize(
    ("plan", "rows", "products"),
    [
        (Plan(), 1, [1]),
        (Plan(), 3, [3]),
        (Plan(few_rows=Form.EACH_ROW), 3, [1, 1, 1]),
        (Plan(few_rows=Form.EACH_ROW), Plan.FEW_ROWS, [1] * Plan.FEW_ROWS),
        (Plan(few_rows=Form.EACH_ROW), Plan.FEW_ROWS + 1, [Plan.FEW_ROWS + 1]),
        (Plan(few_rows=Form.WEIGHTS_FIRST), Plan.EACH_UP_TO, [1] * Plan.EACH_UP_TO),
        (Plan(few_rows=Form.WEIGHTS_FIRST), Plan.EACH_UP_TO + 1, [Plan.EACH_UP_TO + 1]),
        (Plan(few_rows=Form.WEIGHTS_FIRST), Plan.FEW_ROWS + 1, [Plan.FEW_ROWS + 1]),
        (Plan(one_row=Form.PAD_ROWS), 1, [2]),
        (Plan(one_row=Form.PAD_ROWS), 2, [2]),
    ],
)
def test_a_form_is_what_is_run(plan, rows, products):
    """How many rows each product of the program has."""
    program = jax.make_jaxpr(lambda x, w: linear(x, w, plan))(jnp.ones((rows, IN)), jnp.ones((OUT, IN)))
    sizes = [max(set(e.outvars[0].aval.shape) - {OUT}) for e in program.eqns if e.primitive.name == "dot_general"]
    assert sizes == products


@pytest.mark.parametrize("plan", [Plan(), Plan(out_first=False)])
def test_the_weights_can_be_the_left_operand(plan):
    plan = dataclasses.replace(plan, few_rows=Form.WEIGHTS_FIRST)
    weight = jnp.ones((OUT, IN) if plan.out_first else (IN, OUT))
    program = jax.make_jaxpr(lambda x, w: linear(x, w, plan))(jnp.ones((5, IN)), weight)
    (product,) = [e for e in program.eqns if e.primitive.name == "dot_general"]
    assert product.invars[0].aval.shape == weight.shape
    assert "optimization_barrier" in str(program), "without it, XLA turns the product back"


@pytest.mark.parametrize(
    "plan", [Plan(), Plan(few_rows=Form.WEIGHTS_FIRST), Plan(one_row=Form.PAD_ROWS, few_rows=Form.EACH_ROW)]
)
def test_float32_weights_are_multiplied_in_float32(plan):
    """On hardware that would round first, too."""
    text = str(jax.make_jaxpr(lambda x, w: linear(x, w, plan))(jnp.ones((4, IN)), jnp.ones((OUT, IN))))
    assert "HIGHEST" in text


def test_half_precision_is_summed_in_float32():
    """2048 ones and one: in bfloat16 the sum would stop growing at 256."""
    x, weight = jnp.ones((1, 2049)), jnp.ones((1, 2049), jnp.bfloat16)
    assert linear(x, weight, Plan()).item() == 2049
