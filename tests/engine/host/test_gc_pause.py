"""While a model is loaded no garbage is collected, and afterwards as before."""

from __future__ import annotations

import gc

import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.host.gc_pause import collected_later
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from langchain_gemma_jax.models.loading.opened import Opened


@pytest.fixture(params=[True, False])
def was(request):
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_it_is_afterwards_as_it_was(was):
    def fail() -> None:
        with collected_later():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled() == was


def test_two_that_overlap_leave_it_as_it_was(was):
    first, second = collected_later(), collected_later()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled() == was


def test_a_model_is_loaded_in_it():
    seen = []

    class Files(ModelFiles):
        def open(self, *_: object, **__: object) -> Opened:
            seen.append(gc.isenabled())
            raise FileNotFoundError

    engine = Engine(Settings(), Files())
    try:
        with pytest.raises(FileNotFoundError):
            engine.load("nowhere/at-all")
    finally:
        assert engine.close(30)
    assert seen == [False]
    assert gc.isenabled()
