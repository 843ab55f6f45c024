"""A model of transformers that is divided among devices says what it says on one, and lies on each in its part."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import DevicesError
from langchain_gemma_jax.models.loading.load import load
from tests.torchax.four_devices import start
from tests.torchax.torch_models import needs_torch, save_model

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.timeout(900)]


@pytest.mark.parametrize("family", ["llama 3", "gemma 3"])
def test_four_devices_say_what_one_says(family, tmp_path):
    save_model(tmp_path, family)
    found = start(tmp_path, 1, 4)
    alone, four = found["1"], found["4"]
    assert four["answers"] == alone["answers"]
    assert four["reused"] == alone["reused"] > 20
    assert len(four["weights"]) == 4
    assert set(four["weights"]) == {four["foretold"]}
    # Norms, and key heads that are two, are on more than one device; all else is on one.
    assert alone["whole"] / 4 < four["foretold"] < 0.4 * alone["whole"]
    assert alone["kv"] == [2]
    assert four["kv"] == [1], "two key heads go two ways, and each is on two devices"
    assert four["programs"] <= four["bound"]


def test_more_devices_than_there_are_and_auto(tmp_path):
    save_model(tmp_path, "llama 3")
    with pytest.raises(DevicesError, match="devices=2 was asked for, and this process has 1"):
        load(f"torchax:{tmp_path}", devices=2)
    with load(f"torchax:{tmp_path}", devices="auto") as model:
        assert model.placement.one_device
