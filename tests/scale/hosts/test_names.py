"""Names by which both sides of a line mean the same arrays."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import pytest

from langchain_gemma_jax.scale.hosts.names import ArrayNames, each


def test_arrays_have_names_until_they_are_gone():
    names = ArrayNames()
    arrays = [jnp.full(3, number) for number in range(5)]
    first, second = names.batch(), names.batch()
    names.give(first, arrays[:3])
    names.give(second, arrays[3:])
    assert each(names.of(arrays)) == [(first, 0), (first, 1), (first, 2), (second, 0), (second, 1)]
    assert names.of(arrays[:3]) == [[first, 0, 3]]  # a model's weights are one run
    assert each(names.of([arrays[1], arrays[0], arrays[1]])) == [(first, 1), (first, 0), (first, 1)]
    arrays[0].delete()
    jax.jit(lambda array: array + 1, donate_argnums=0)(arrays[1])
    names.look()
    assert each(names.gone()) == [(first, 0), (first, 1)]
    del arrays[:3]
    gc.collect()
    assert each(names.gone()) == [(first, 2)]  # and no other twice
    with pytest.raises(LookupError):
        names.of([jnp.ones(2)])
