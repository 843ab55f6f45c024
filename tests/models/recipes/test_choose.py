"""Given, remembered, measured, or safe: in that order."""

import dataclasses
import importlib
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from langchain_gemma_jax.kernels.library import Kernels
from langchain_gemma_jax.models.recipes import (
    AttentionForm,
    BetweenForm,
    Form,
    Plan,
    Recipe,
    choose_recipe,
    store,
)
from langchain_gemma_jax.models.recipes.default import CPU_ATTENTION_PAIRS
from langchain_gemma_jax.models.recipes.store import recall, recipe_file, remember

choose = importlib.import_module("langchain_gemma_jax.models.recipes.choose")
MEASURED = Recipe("float32", Plan(one_row=Form.PAD_ROWS), attention_pairs=CPU_ATTENTION_PAIRS)


@pytest.fixture(autouse=True)
def _a_fresh_process(monkeypatch):
    monkeypatch.setattr(choose, "_chosen", {})


@pytest.fixture
def probes(monkeypatch):
    """Stands in for measuring: every call is recorded, and finds ``MEASURED``."""
    calls = []

    def measure(default, **_):
        calls.append(default.dtype)
        return dataclasses.replace(default, layers=MEASURED.layers, embed=MEASURED.embed), len(
            calls
        ) > 1  # the first time there is no time for everything

    monkeypatch.setattr(choose, "probe", measure)
    monkeypatch.setattr(choose, "kernels", lambda: Kernels(None, "off"))
    monkeypatch.setattr(choose, "probe_between", lambda: BetweenForm.XLA)
    return calls


def test_a_process_measures_once(probes):
    assert choose_recipe("float32") == choose_recipe("float32") == MEASURED
    assert probes == ["float32"]


def test_kernels_attend_where_they_run_and_what_is_between_is_measured(probes, monkeypatch):
    """So they do by a remembered recipe: nothing is measured again."""
    probes.append("an earlier one: this one is complete")
    asked = []

    def chosen(state):
        monkeypatch.setattr(choose, "_chosen", {})
        monkeypatch.setattr(choose, "kernels", lambda: state)
        found = choose_recipe("float32")
        return found.attention, found.between

    monkeypatch.setattr(choose, "probe_between", lambda: asked.append(1) or BetweenForm.KERNEL)
    assert chosen(Kernels(None, "off")) == (AttentionForm.PRODUCTS, BetweenForm.XLA)
    recipe_file("float32").unlink()
    by_kernel = AttentionForm.KERNEL, BetweenForm.KERNEL
    assert chosen(Kernels("portable", "")) == chosen(Kernels("avx2", "")) == by_kernel
    assert asked == [1], "remembered"


@pytest.mark.parametrize(("variant", "fast"), [("portable", False), ("avx2", True)])
def test_it_is_known_if_the_kernels_are_fast(probes, monkeypatch, variant, fast):
    found = []
    monkeypatch.setattr(choose, "kernels", lambda: Kernels(variant, ""))
    monkeypatch.setattr(choose, "probe", lambda default, **told: found.append(told) or (default, True))
    choose_recipe("float32")
    assert found == [{"with_kernels": True, "kernels_are_fast": fast}]
    assert probes == []


def test_an_incomplete_measurement_is_good_for_some_time(probes, monkeypatch):
    def next_process():
        monkeypatch.setattr(choose, "_chosen", {})
        return choose_recipe("float32")

    assert next_process() == next_process() == MEASURED
    assert probes == ["float32"]
    for seconds in (-3601, 60):  # long ago, or by a clock that was wrong
        when = time.time() + seconds
        os.utime(recipe_file("float32"), (when, when))
        assert recall("float32") is None
    next_process()  # the second measurement is a complete one
    os.utime(recipe_file("float32"), (0, 0))
    assert next_process().source == "disk"
    assert probes == ["float32", "float32"]


def test_processes_that_start_together_measure_once(monkeypatch, probes):
    """As threads here: locks of two open files are apart, whoever opened them."""

    def measure(default, **_):
        time.sleep(0.2)
        probes.append(default.dtype)
        return MEASURED, True

    monkeypatch.setattr(choose, "probe", measure)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: choose._choose("cpu", "float32"), range(4)))
    assert probes == ["float32"]
    assert found == [MEASURED] * 4


def test_nobody_waits_for_long(monkeypatch, probes):
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with store.alone("float32"):
        assert choose_recipe("float32") == MEASURED
    assert probes == ["float32"]


def test_the_remembered_recipe_comes_before_measuring(probes):
    kept = Recipe("float32", Plan(out_first=False), attention_pairs=CPU_ATTENTION_PAIRS)
    remember(kept)
    assert choose_recipe("float32") == kept
    assert probes == []


def test_gpu_and_tpu_are_not_measured(probes, monkeypatch):
    monkeypatch.setattr(choose.jax, "default_backend", lambda: "tpu")
    assert choose_recipe("bfloat16") == Recipe("bfloat16")
    assert probes == []
