"""The benchmark for GPUs and TPUs, on a model so small that a CPU is done with it at once."""

import argparse
import json

import pytest

from benchmarks.device import accelerator
from langchain_gemma_jax.models.configuration.catalog import published
from langchain_gemma_jax.models.configuration.model_config import ModelConfig


def _tiny(name: str) -> ModelConfig:
    full = published(name)
    layers = tuple(layer for layer in full.layers[4:6])
    small = tuple(type(layer)(1, 32, 64, layer.rope, layer.window and 16) for layer in layers)
    return full.replace(vocab_size=2048 + 256, width=64, heads=2, layers=small, max_context=64)


@pytest.mark.long
def test_every_way_to_store_weights_has_a_row_of_the_table(tmp_path, monkeypatch, capsys):
    for name, value in {"CAPACITY": 64, "PROMPT": 16, "STEPS": 2, "CALLS": 4, "BUFFER": 1 << 25}.items():
        monkeypatch.setattr(accelerator, name, value)
    monkeypatch.setattr(accelerator, "published", _tiny)
    file = tmp_path / "found.json"
    assert accelerator.main(["--cpu", "--sizes", "gemma-3-270m", "--rows", "1,2", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())["rows"]
    assert [row["weights"] for row in rows] == list(accelerator.WAYS)
    sizes = [row["gigabytes"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] / sizes[0] == pytest.approx(8.5 / 16, rel=0.05)  # 32 numbers share a scale of 16 bits
    for row in rows:
        assert set(row["decode"]) == {"1", "2"}
        assert min(*row["decode"].values(), row["prefill"], row["of_bandwidth"]) > 0
    printed = capsys.readouterr().out
    assert all(f"| gemma-3-270m | {way} |" in printed for way in accelerator.WAYS)


def test_without_an_accelerator_it_says_so(capsys):
    assert accelerator.main(["--sizes", "gemma-3-270m"]) == 1
    assert "JAX finds no GPU or TPU here" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["8", "2,1", "0"])
def test_one_conversation_is_measured_first(text):
    with pytest.raises(argparse.ArgumentTypeError):
        accelerator.counts(text)
