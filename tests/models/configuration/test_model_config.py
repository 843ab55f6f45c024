from __future__ import annotations

import dataclasses

import pytest

from langchain_gemma_jax.models.configuration.model_config import LayerConfig, ModelConfig, Rope
from tests.parity.tiny import small

LOCAL = LayerConfig(kv_heads=1, head_dim=4, ffw_width=8, rope=Rope(1e4), window=8)


def test_a_layer_says_what_it_is():
    everywhere = dataclasses.replace(LOCAL, window=None)
    sharing = dataclasses.replace(LOCAL, kv_from=0)
    assert (LOCAL.is_local, everywhere.is_local) == (True, False)
    assert (LOCAL.owns_kv, sharing.owns_kv) == (True, False)


def test_the_layers_that_own_kv_in_order():
    assert small("gemma-4-e2b").kv_layers == (0, 1)
    assert small("gemma-3-1b").kv_layers == (0, 1, 2)


def test_replacing_changes_a_copy():
    config = small("gemma-2b")
    other = config.replace(vocab_size=7)
    assert (other.vocab_size, config.vocab_size) == (7, 160)
    assert other.replace(vocab_size=160) == config
    with pytest.raises(TypeError, match="unheard_of"):
        config.replace(unheard_of=1)


@pytest.mark.parametrize("value", [Rope(1.0), LOCAL, small("gemma-4-26b-a4b")])
def test_values_are_frozen_and_can_be_keys(value):
    """A jitted program is looked up by its configuration."""
    copied = dataclasses.replace(value)
    assert {value: 1}[copied] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, dataclasses.fields(value)[0].name, 1)


def test_the_plainest_model_is_gemma_1():
    config = ModelConfig("gemma", 10, 8, 2, (LOCAL,), 64, attention_scale=0.5)
    assert (config.post_norms, config.qk_norm, config.v_norm, config.layer_scale) == (False,) * 4
    assert (config.attention_softcap, config.logits_softcap, config.moe, config.per_layer_input) == (None,) * 4
    assert (config.norm_offset, config.tied_head) == (1.0, True)
