"""The catalog against the published configurations."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.configuration.abstract import abstract, total_bytes
from langchain_gemma_jax.models.configuration.catalog import _ENCODERS, known, published, senses_of_size
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.vision.media_config import _READERS
from tests.goldens.published import PUBLISHED

# Parameters of the text model, as the model cards count them (Gemma 4 E2B and E4B: with the per-layer embeddings).
MILLIONS = {
    "gemma-2b": 2506,
    "gemma-7b": 8538,
    "gemma-2-2b": 2614,
    "gemma-2-9b": 9242,
    "gemma-2-27b": 27227,
    "gemma-3-270m": 268,
    "gemma-3-1b": 1000,
    "gemma-3-4b": 3880,
    "gemma-3-12b": 11766,
    "gemma-3-27b": 27009,
    "functiongemma-270m": 268,
}


@pytest.mark.parametrize("name", known())
def test_a_size_is_as_its_config_json_has_it(name):
    """But for end tokens: where there is no ``config.json``, there is no ``generation_config.json`` to add any."""
    ours, theirs = published(name), config_from_hf(PUBLISHED[name], name)
    assert set(theirs.eos_ids) <= set(ours.eos_ids)
    assert ours.replace(eos_ids=theirs.eos_ids) == theirs


@pytest.mark.parametrize("name", MILLIONS)
def test_a_size_has_the_parameters_that_it_is_named_for(name):
    parameters = total_bytes(abstract(published(name), "float32")) / 4
    assert round(parameters / 1e6) == MILLIONS[name]


def test_what_profiles_say_is_what_is_read():
    assert set(_ENCODERS) == set(_READERS), "each kind of model whose encoders are implemented"
    assert {name for name in known() if senses_of_size(name)} == {
        *("gemma-3-4b", "gemma-3-12b", "gemma-3-27b"),
        *(name for name in known() if name.startswith("gemma-4")),
    }
    assert {name for name in known() if "audio" in senses_of_size(name)} == {"gemma-4-e2b", "gemma-4-e4b"}


def test_an_unknown_size_names_the_known_ones():
    with pytest.raises(UnsupportedModelError, match=r"expected one of gemma-2b, .*gemma-4-26b-a4b, found 'gemma-5'"):
        published("gemma-5")


def test_the_catalog_cannot_be_changed():
    with pytest.raises(TypeError):
        known()["gemma-2b"] = None
