"""The configuration of a drafter, as published ones are spelled; whatever else stands there is a typed error."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import ConfigError, UnsupportedModelError
from langchain_gemma_jax.models.configuration.drafter_config import drafter_from_hf, for_target, is_drafter
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import DraftingConfig
from tests.parity.drafters import DRAFTERS, TARGETS

VALUES = (None, True, -1, 0, 1, 5, 2**40, 0.5, float("nan"), "", "text", [], [1], {}, {"a": 1})


@pytest.mark.parametrize("name", DRAFTERS)
def test_layers_read_the_last_of_the_targets_layers_of_their_kind(name):
    target = config_from_hf(TARGETS[name], "target")
    config = for_target(drafter_from_hf(DRAFTERS[name], "drafter"), "drafter", target, "target")
    assert len(config.layers) == 4
    for layer in config.layers:
        source = target.layers[layer.kv_from]
        assert source.owns_kv
        assert source.is_local == layer.is_local
        assert not any(each.is_local == layer.is_local and each.owns_kv for each in target.layers[layer.kv_from + 1 :])
    assert config.kv_layers == ()


def test_what_a_configuration_does_not_say_is_as_published():
    text = {"model_type": "gemma4_text", "num_hidden_layers": 4, "hidden_size_per_layer_input": 0}
    config = drafter_from_hf({"model_type": "gemma4_assistant", "text_config": text}, "x")
    assert config.drafting == DraftingConfig(1536)
    ordered = {"model_type": "gemma4_unified_assistant", "use_ordered_embeddings": True}
    config = drafter_from_hf({**ordered, "text_config": {**text, "model_type": "gemma4_unified_text"}}, "x")
    assert config.drafting == DraftingConfig(3840, 2048, 32)
    assert all(layer.window in {None, 1024} for layer in config.layers)


@pytest.mark.parametrize("name", DRAFTERS)
def test_any_value_anywhere_gives_a_configuration_or_a_typed_error(name):
    target = config_from_hf(TARGETS[name], "target")
    for inside in (False, True):
        for key in DRAFTERS[name]["text_config"] if inside else DRAFTERS[name]:
            for value in VALUES:
                raw = dict(DRAFTERS[name])
                if inside:
                    raw["text_config"] = {**raw["text_config"], key: value}
                else:
                    raw[key] = value
                assert is_drafter(raw) or key == "model_type"
                try:
                    for_target(drafter_from_hf(raw, "drafter"), "drafter", target, "target")
                except (ConfigError, UnsupportedModelError) as error:
                    assert "drafter" in str(error)  # noqa: PT017  there may be none
