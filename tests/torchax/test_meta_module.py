"""Unservable models are refused before weights are read; bodies and heads are found wherever a class has them."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.torchax.meta_module import GivenStates, meta_module
from tests.torchax.matrix import SERVED
from tests.torchax.torch_models import needs_torch, save_tokenizer

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


def test_an_encoder_with_a_decoder(tmp_path):
    import transformers

    sizes = {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_heads": 4, "num_layers": 1, "vocab_size": 407}
    save_tokenizer(tmp_path)
    transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match="'t5' has an encoder and a decoder"):
        load(f"torchax:{tmp_path}")


def test_a_body_is_found_and_its_names_begin_with_its_own():
    for name, body in (
        ("gpt 2", "transformer"),
        ("llama 4, text", "model"),
        ("opt", "model"),
        ("gpt-neox", "gpt_neox"),
    ):
        family = SERVED[name]
        config = {"model_type": family.kind, "vocab_size": 407, **family.sizes}
        meta = meta_module(json.dumps(config), "float32")
        assert (meta.body_name, meta.prefix) == (body, f"{body}.")
        assert sum(name.startswith(meta.prefix) for name, _, _ in meta.specs) >= len(meta.specs) - 1
        assert {value.device.type for value in meta.module.parameters()} == {"meta"}


def test_numbers_that_json_lacks_are_read_and_kinds_that_nobody_has_refused():
    config = {"model_type": "llama", "vocab_size": 407, **SERVED["llama 3"].sizes, "rms_norm_eps": {"__float__": "NaN"}}
    assert str(meta_module(json.dumps(config), "float32").module.config.rms_norm_eps) == "nan"
    with pytest.raises(ConfigError, match=r"expected a model_type that transformers 5\.24"):
        meta_module(json.dumps({"model_type": "nobodys"}), "float32")


def test_a_head_sees_hidden_states_and_nothing_else():
    given = GivenStates("states")
    assert (given[0], given[1:], given.last_hidden_state) == ("states", (), "states")
    assert given.cross_attentions is None
    assert not hasattr(given, "__iter__")
