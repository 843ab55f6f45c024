"""Given, remembered, measured, or safe: in that order."""

import dataclasses
import importlib

import pytest

from langchain_gemma_jax.models.recipes import Form, Plan, Recipe, choose_recipe
from langchain_gemma_jax.models.recipes.default import CPU_ATTENTION_PAIRS
from langchain_gemma_jax.models.recipes.store import recall, remember

choose = importlib.import_module("langchain_gemma_jax.models.recipes.choose")
MEASURED = Recipe("float32", Plan(one_row=Form.PAD_ROWS), attention_pairs=CPU_ATTENTION_PAIRS, write_in_loop=True)


@pytest.fixture(autouse=True)
def _a_fresh_process(monkeypatch):
    monkeypatch.setattr(choose, "_chosen", {})


@pytest.fixture
def probes(monkeypatch):
    """Stands in for measuring: every call is recorded, and finds ``MEASURED``."""
    calls = []

    def measure(default):
        calls.append(default.dtype)
        return dataclasses.replace(default, layers=MEASURED.layers, embed=MEASURED.embed), len(
            calls
        ) > 1  # the first time there is no time for everything

    monkeypatch.setattr(choose, "probe", measure)
    return calls


def test_a_process_measures_once(probes):
    assert choose_recipe("float32") == choose_recipe("float32") == MEASURED
    assert probes == ["float32"]


def test_only_a_complete_measurement_is_remembered(probes, monkeypatch):
    choose_recipe("float32")
    assert recall("float32") is None
    monkeypatch.setattr(choose, "_chosen", {})  # the next process
    choose_recipe("float32")
    assert recall("float32").layers == MEASURED.layers
    monkeypatch.setattr(choose, "_chosen", {})
    assert choose_recipe("float32").source == "disk"
    assert probes == ["float32", "float32"]


def test_the_remembered_recipe_comes_before_measuring(probes):
    kept = Recipe("float32", Plan(out_first=False), attention_pairs=CPU_ATTENTION_PAIRS, write_in_loop=True)
    remember(kept)
    assert choose_recipe("float32") == kept
    assert probes == []


def test_gpu_and_tpu_are_not_measured(probes, monkeypatch):
    monkeypatch.setattr(choose.jax, "default_backend", lambda: "tpu")
    assert choose_recipe("bfloat16") == Recipe("bfloat16")
    assert probes == []
