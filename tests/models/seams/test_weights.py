"""A matrix that is stored in another way gives what its dense twin gives, in everything that a model asks of it."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract
from langchain_gemma_jax.models.configuration.abstract import total_bytes as dense_bytes
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.random_params import random_params
from langchain_gemma_jax.models.recipes import Form, Plan, Recipe
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.linear import linear
from langchain_gemma_jax.models.seams.params import leaves
from langchain_gemma_jax.models.seams.weights import DENSE, map_specs, matrix_at, rows_of, total_bytes
from tests.models.int8 import Int8, Int8Storage, unpacked
from tests.parity.tiny import small

INT8 = Recipe("float32", storage=Int8Storage())
TURNED = Plan(out_first=False)


def pair(*shape: int, transposed: bool = False) -> tuple[Int8, jax.Array]:
    """A packed matrix, and the dense one that it stands for."""
    spec = ArraySpec(shape, "float32", transposed)
    packed = Int8Storage().pack((), spec, np.random.default_rng(shape).normal(size=spec.stored_shape))
    dense = packed.values.astype(np.float32) * packed.scales[..., None]
    return jax.tree.map(jnp.asarray, packed), jnp.asarray(dense.swapaxes(-1, -2) if transposed else dense)


@pytest.mark.long
@pytest.mark.parametrize("plan", [Plan(), TURNED, Plan(few_rows=Form.EACH_ROW)])
def test_products_rows_and_matrices_of_a_stack_are_those_of_the_dense_twin(plan):
    packed, dense = pair(24, 10, transposed=not plan.out_first)
    for shape in ((1, 10), (2, 3, 10), (40, 10)):
        x = jnp.asarray(np.random.default_rng(shape).normal(size=shape), jnp.float32)
        found = linear(x, packed, plan)
        assert (found.dtype, found.shape) == ("float32", (*shape[:-1], 24))
        np.testing.assert_allclose(found, linear(x, dense, plan), atol=1e-5)
    ids = jnp.array([[3, 0], [23, 3]])
    np.testing.assert_array_equal(rows_of(packed, ids, plan), rows_of(dense, ids, plan))
    stack, dense_stack = pair(4, 6, 10)
    one = matrix_at(stack, jnp.int32(2))
    assert isinstance(one, Int8)
    np.testing.assert_allclose(linear(x, one, plan), x @ matrix_at(dense_stack, jnp.int32(2)).T, atol=1e-5)


def test_dense_rows_are_float32_in_either_layout():
    table = jnp.arange(12, dtype=jnp.bfloat16).reshape(4, 3)
    ids = jnp.array([[3, 0, 1]])
    for weight, plan in ((table, Plan()), (table.T, TURNED)):
        found = rows_of(weight, ids, plan)
        assert found.dtype == "float32"
        np.testing.assert_array_equal(found, table[ids].astype("float32"))


@pytest.mark.long
@pytest.mark.parametrize(("name", "out_first"), [("gemma-4-26b-a4b", True), ("gemma-4-e2b", False)])
def test_a_packed_model_computes_what_its_dense_twin_does(name, out_first):
    config, plan = small(name), Plan(out_first)
    recipe = replace(INT8, layers=plan, embed=plan)
    plain = replace(recipe, storage=DENSE)
    packed = random_params(config, recipe, seed=3)
    assert {type(weight) for layer in packed["layers"] for weight in layer.values()} == {Int8, type(jnp.ones(1))}
    assert isinstance(packed["embed"], Int8)
    tokens = jnp.array([[5, 9, 3, 1]])

    def scores(params, recipe):
        cache = kv_cache.allocate(Gemma(config).cache_layout, 1, 32, "float32")
        start, count = jnp.zeros(1, jnp.int32), jnp.full(1, 4)
        hidden, _ = forward(params, config, recipe, tokens, start, count, cache)
        return logits(params, config, recipe, hidden)

    run = jax.jit(scores, static_argnums=1, compiler_options={"xla_backend_optimization_level": 0})
    one, other = run(packed, recipe), run(unpacked(packed, config, plain), plain)
    np.testing.assert_allclose(one, other, atol=1e-4 * float(jnp.std(other)))


@pytest.mark.long
def test_bytes_are_those_that_are_stored_before_and_after():
    config = small("gemma-4-26b-a4b")
    specs, params = INT8.abstract(config), random_params(config, INT8)
    assert jax.tree.structure(map_specs(lambda _: 0, specs)) == jax.tree.structure(jax.tree.map(lambda _: 0, params))
    stored = map_specs(lambda spec: jax.ShapeDtypeStruct(spec.stored_shape, spec.dtype), specs)
    for spec, array in zip(jax.tree.leaves(stored), jax.tree.leaves(params), strict=True):
        assert (spec.shape, spec.dtype) == (array.shape, array.dtype)
    model = Model(Gemma(config), params, tokenizer=None, recipe=INT8, name="packed")
    assert total_bytes(specs) == model.nbytes == sum(array.nbytes for array in leaves(params))
    assert specs["embed"].nbytes == params["embed"].nbytes == config.vocab_size * (config.width + 4)
    assert model.nbytes < 0.5 * dense_bytes(abstract(config, "float32"))
    model.close()
    assert all(array.is_deleted() for array in leaves(params))
    assert model.closed
