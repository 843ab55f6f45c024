"""The models that come with the package: they are there, whole, and what transformers takes them for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from langchain_gemma_jax import Sampling, engine
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration import embedded
from langchain_gemma_jax.models.configuration.embedded import CONTEXT, DEFAULT, EMBEDDED, embedded_folder
from langchain_gemma_jax.models.loading.load import load

GOLDEN = json.loads((Path(__file__).parents[2] / "goldens" / "embedded.json").read_text())
SHELF = Path(embedded.__file__).parents[1] / "sprout"


def test_every_name_has_its_folder_and_every_folder_its_name():
    assert {path.name for path in SHELF.iterdir() if path.is_dir()} == set(EMBEDDED)
    assert DEFAULT in EMBEDDED
    for name in EMBEDDED:
        config = json.loads((embedded_folder(name) / "config.json").read_text())
        assert config["max_position_embeddings"] == CONTEXT
        assert config["model_type"] == "gemma3_text"


@pytest.mark.parametrize("source", ["./sprout-s", "sprout", "SPROUT-S", Path("sprout-s"), "", None, 3])
def test_other_sources_are_not_embedded(source):
    assert embedded_folder(source) is None


def test_a_folder_of_that_name_is_meant_by_its_path_only(tmp_path, monkeypatch):
    (tmp_path / "sprout-s").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("sprout-s", progress=False).name == "sprout-s"
    with pytest.raises(Exception, match=r"config\.json"):
        load("./sprout-s")


def test_an_embedded_model_has_no_revision():
    with pytest.raises(InputError, match="revision='main' is for models on the Hub"):
        load("sprout-s", revision="main")


@pytest.mark.long
@pytest.mark.parametrize("name", EMBEDDED)
@pytest.mark.parametrize("number", range(8))
def test_tokens_are_those_of_transformers(name, number):
    golden = GOLDEN["models"][name][number]
    served = engine().load(name, dtype="float32")
    ids = served.model.tokenizer.encode_scaffold(golden["text"])
    assert list(ids) == golden["prompt"]
    made = golden["made"]
    done = engine().submit(served, ids, Sampling(temperature=0, max_tokens=len(made))).result()
    assert list(done.ids) == made
