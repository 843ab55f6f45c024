"""The two kinds of quantized releases are distinguished by their folders, and others are refused."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.quantized.quantized_folder import open_quantized, quantization_of

SAID = {"quant_method": "gemma"}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"quantization_config": SAID}, SAID),
        ({"text_config": {"quantization_config": SAID}}, SAID),
        ({"quantization_config": 5, "text_config": 7}, None),
        ({}, None),
    ],
)
def test_it_is_said_in_the_configuration_or_in_its_text_towers(tmp_path, config, found):
    assert quantization_of(tmp_path) is None, "without a configuration"
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert quantization_of(tmp_path) == found


@pytest.mark.parametrize("method", ["gptq", "awq", None, 5, ["gemma"]])
def test_every_other_method_is_refused_by_name(tmp_path, method):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3_text"}))
    with pytest.raises(UnsupportedModelError, match=r"compressed-tensors or gemma.*found"):
        open_quantized(tmp_path, {"quant_method": method})
