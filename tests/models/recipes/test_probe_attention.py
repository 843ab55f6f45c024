"""Kernels attend where that is measured to be faster, and where there was no time for measuring but they are known."""

from __future__ import annotations

import math

import jax
import pytest

from langchain_gemma_jax.kernels.library import kernels
from langchain_gemma_jax.models.recipes import Attention, AttentionForm, Plan
from langchain_gemma_jax.models.recipes.probe import ONE, Matrix, OutOfTimeError, _Stopwatch
from langchain_gemma_jax.models.recipes.probe_attention import FEW, MANY, probe_attention

KERNEL, PRODUCTS = AttentionForm.KERNEL, AttentionForm.PRODUCTS


def timer(times):
    """A stopwatch that shows these times; None: no time is left."""

    def measure(form, tokens):
        if (seconds := times.get((form, tokens), 1.0)) is None:
            raise OutOfTimeError
        return seconds

    return measure


def chosen(times, *, fast=False):
    attention, complete = probe_attention("float32", timer(times), kernels_are_fast=fast)
    return attention.few, attention.many, complete


def test_each_is_the_faster_one():
    assert chosen({}) == (PRODUCTS, PRODUCTS, True)
    assert chosen({(KERNEL, FEW): 0.5}) == (KERNEL, PRODUCTS, True)
    assert chosen({(KERNEL, FEW): 0.97, (PRODUCTS, MANY): 2.0}) == (PRODUCTS, KERNEL, True)


def test_without_time_kernels_are_taken_if_they_are_known_to_be_fast():
    for times in ({(KERNEL, FEW): None}, {(PRODUCTS, MANY): None}):
        assert chosen(times) == (PRODUCTS, PRODUCTS, False)
        assert chosen(times, fast=True) == (KERNEL, KERNEL, False)


@pytest.mark.skipif(not kernels().run, reason=f"no kernels run: {kernels().why}")
def test_the_real_one_measures_and_stops_in_time():
    attention, complete = probe_attention("bfloat16", budget=60, kernels_are_fast=False)
    assert complete
    assert attention.form(16) is attention.few
    assert attention.form(17) is attention.many
    assert probe_attention("bfloat16", budget=0, kernels_are_fast=False) == (Attention(), False)


def test_probes_measure_where_copies_that_nobody_asked_for_are_forbidden():
    with jax.transfer_guard("disallow"):
        assert math.isfinite(_Stopwatch("bfloat16", 60)(Matrix.LAYER, Plan(), ONE))
        if kernels().run:
            assert probe_attention("bfloat16", budget=60, kernels_are_fast=False)[1]
