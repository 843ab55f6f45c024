"""Kernels compute what lies between products where that is measured to be faster."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.recipes import BetweenForm
from langchain_gemma_jax.models.recipes.probe_between import WIDTH, _by_kernel, _by_xla, probe_between


def test_who_is_clearly_faster_is_chosen():
    for seconds, chosen in ((0.9, BetweenForm.KERNEL), (0.97, BetweenForm.XLA), (2.0, BetweenForm.XLA)):
        assert probe_between(lambda form: seconds if form is BetweenForm.KERNEL else 1.0) is chosen  # noqa: B023


@pytest.mark.skipif(not kernels().run, reason=f"no kernels run: {kernels().why}")
def test_the_real_one_times_two_programs_that_compute_the_same():
    with jax.transfer_guard("disallow"):  # as whoever loads a model may have it
        assert probe_between() in BetweenForm
    x, scale = np.linspace(-2, 3, WIDTH, dtype=np.float32)[None], np.ones(WIDTH, np.float32)
    np.testing.assert_allclose(jax.jit(_by_kernel)(x, scale), jax.jit(_by_xla)(x, scale), rtol=1e-4, atol=1e-4)
