from __future__ import annotations

import dataclasses
import gc

import jax
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.model import Model

CONFIG = ModelConfig(
    generation="gemma",
    vocab_size=8,
    width=4,
    heads=1,
    layers=(LayerConfig(kv_heads=1, head_dim=4, ffw_width=4, rope=Rope(1e4)),),
    max_context=16,
    attention_scale=1.0,
)


def make():
    def array(*shape):
        return jax.device_put(np.ones(shape, np.float32), jax.devices()[0])

    params = {"embed": array(8, 4), "layers": [{"down": array(4, 4), "scale": array()}, {"down": array(4, 4)}]}
    return Model(Gemma(CONFIG), params, tokenizer=None, recipe=None, name="tiny")


def test_nbytes_are_the_weights_and_stay_known_after_close():
    model = make()
    assert model.nbytes == 4 * (32 + 16 + 1 + 16)
    model.close()
    assert model.nbytes == 4 * (32 + 16 + 1 + 16)


def test_close_frees_what_others_still_hold_and_may_be_called_twice():
    gc.collect()
    before = len(jax.live_arrays())
    model = make()
    held = model.params["embed"]
    assert len(jax.live_arrays()) == before + 4
    assert not model.closed
    model.close()
    model.close()
    assert model.closed
    assert held.is_deleted()
    assert len(jax.live_arrays()) == before


def test_close_after_an_array_was_donated():
    model = make()
    model.params["embed"].delete()
    model.close()
    assert model.closed


def test_with_closes_on_an_error_too():
    model = make()

    def fail():
        with model as entered:
            assert entered is model
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert model.closed


def test_two_models_with_equal_weights_are_two_models():
    """Comparing trees of arrays would be neither cheap nor a truth value."""
    one, other = make(), make()
    assert one == one  # noqa: PLR0124
    assert one != other
    assert len({one, other}) == 2


def test_repr_is_short_and_the_fields_are_frozen():
    model = make()
    assert len(repr(model)) < 1000
    assert "'embed'" not in repr(model), "nothing of its parameters"
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "other"
