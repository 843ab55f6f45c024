"""One library of programs for all models of one shape in one place, for as long as somebody has it."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.executables import libraries as module
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from tests.engine.tiny import CONTEXT


@pytest.fixture
def shape(tiny_model):
    return Shape(tiny_model.architecture, tiny_model.recipe, 320, CONTEXT, PageCounts(1, 1))


@pytest.fixture
def libraries(monkeypatch):
    monkeypatch.setattr("langchain_gemma_jax.compile_cache.install.store_for", lambda _device: None)
    return Libraries(Events())


def test_models_of_one_shape_share_one_and_others_do_not(libraries, shape, tiny_model):
    where = tiny_model.placement
    one = libraries.of(shape, where, "first")
    assert libraries.of(replace(shape), where, "second") is one, "an equal shape is the same"
    other = libraries.of(replace(shape, loop_steps=2), where, "first")
    assert other is not one
    assert set(libraries.all()) == {one, other}
    assert one._tally is other._tally is libraries.tally


def test_with_the_last_that_has_it_it_goes(libraries, shape, tiny_model):
    kept = libraries.of(shape, tiny_model.placement, "kept")
    gone = libraries.of(replace(shape, loop_steps=2), tiny_model.placement, "gone")
    del gone
    gc.collect()
    assert libraries.all() == [kept]


def test_it_is_kept_where_programs_of_its_device_are(libraries, shape, tiny_model, monkeypatch):
    asked = []
    monkeypatch.setattr("langchain_gemma_jax.compile_cache.install.store_for", asked.append)
    module.library_of(module.Programs(shape, tiny_model.placement), libraries.tally, "m", libraries.background)
    assert asked == [tiny_model.placement.devices[0]]
