"""What holds for every test of training: strict JAX, an empty home; and a tokenizer and a model of next to no size."""

from __future__ import annotations

import os

# Before anything imports JAX or huggingface_hub, which read their settings once.
os.environ |= {
    "JAX_PLATFORMS": os.environ.get("JAX_PLATFORMS", "cpu"),
    "JAX_NUMPY_DTYPE_PROMOTION": "strict",
    "JAX_NUMPY_RANK_PROMOTION": "raise",
    "GEMMA_JAX_COMPILE_CACHE": "off",
    "HF_HUB_OFFLINE": "1",
}

import jax
import pytest

from training import configs, tokenizer


@pytest.fixture(scope="package", autouse=True)
def _quick_compiles():
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def _empty_home(monkeypatch, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))


@pytest.fixture(scope="session")
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save(tokenizer.build(conversations=150), folder)
    return folder


def _tiny(monkeypatch, layers):
    sizes = configs._sizes(layers, width=16, heads=2, kv_heads=1, head_dim=8, ffw_width=24, period=layers)
    monkeypatch.setitem(configs.HF_CONFIGS, "tiny", sizes | {"sliding_window": 8})
    return configs.model_config("tiny")


@pytest.fixture
def tiny(monkeypatch):
    return _tiny(monkeypatch, layers=1)


@pytest.fixture
def tiny_with_both_kinds_of_layers(monkeypatch):
    return _tiny(monkeypatch, layers=2)


@pytest.fixture
def lax_dtypes():
    """optax mixes integers with floats, which the tests' JAX is too strict for."""
    with jax.numpy_dtype_promotion("standard"):
        yield
