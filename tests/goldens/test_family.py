"""PaliGemma 1 and 2 and ShieldGemma 2 against what transformers says: ``make_family.py`` wrote it."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.decisions import probabilities
from langchain_gemma_jax.engine.requests.prompt import MediaSpan
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.seams.kv_cache import allocate
from tests.family_folder import golden, spans, write
from tests.parity.media_models import BEGIN, FAMILY, NEW_TOKENS

BAR = 2e-4  # of the spread


def scores(model, name):
    """Return the scores before each new token, where a picture and its words are read as the engine reads them."""
    tokens, prompt = golden(name)["tokens"], spans(model, name)
    encoder, recipe = model.encoders.encoders[0], model.recipe
    tree = model.encoders.read(0, "float32", model.placement)
    architecture = model.architecture

    @jax.jit
    def read(params, ids, start, count, cache):
        hidden, cache = architecture.forward(params, recipe, ids, start, count, cache, None)
        return architecture.logits(params, recipe, hidden), cache

    @jax.jit
    def show(params, ids, inputs, start, count, cache):
        vectors = encoder.encode(tree, inputs)
        vectors = jnp.pad(vectors, ((0, ids.shape[1] - len(vectors)), (0, 0)))[None]
        given = (0, ids, vectors, start, count, cache, count - 1)
        hidden, cache = architecture.read_medium(params, recipe, *given)
        return architecture.logits(params, recipe, hidden), cache

    at, found = 0, []
    cache_ = allocate(model.config.cache_layout, 1, 256, "float32")
    for span in [*prompt, *([token] for token in tokens[-NEW_TOKENS:-1].tolist())]:
        given = span if isinstance(span, list) else list(span.ids)
        ids = np.full((1, 64), 5, np.int32)
        ids[0, : len(given)] = given
        numbers = np.array([at], np.int32), np.array([len(given)], np.int32)
        if isinstance(span, MediaSpan):
            row, cache_ = show(model.params, ids, dict(span.inputs), *numbers, cache_)
            row = np.asarray(row)[0, 0]
        else:
            row, cache_ = read(model.params, ids, *numbers, cache_)
            row = np.asarray(row)[0, len(given) - 1]
        found.append(row)
        at += len(given)
    return np.stack(found[-NEW_TOKENS:])


@pytest.mark.long
@pytest.mark.parametrize("name", FAMILY)
def test_scores_are_those_of_transformers(name, tmp_path):
    write(tmp_path, name)
    found, theirs = scores(load(tmp_path, dtype="float32"), name), golden(name)["logits"]
    apart = np.abs(found - theirs).max() / theirs.std()
    assert apart <= BAR, apart
    assert (found[:, :BEGIN].argmax(-1) == golden(name)["tokens"][-NEW_TOKENS:]).all()


@pytest.mark.parametrize("name", [name for name in FAMILY if name.startswith("shield")])
def test_the_judgement_of_a_picture_is_the_share_of_yes_in_the_first_scores(name):
    """A decision model takes the scores of these two tokens alone."""
    ids = [FAMILY[name].config[key] for key in ("yes_token_index", "no_token_index")]
    shares = probabilities(golden(name)["logits"][0][ids].tolist(), 1.0)
    np.testing.assert_allclose(shares, golden(name)["shares"], atol=1e-6)


@pytest.mark.parametrize("name", FAMILY)
def test_a_config_that_transformers_wrote_means_the_same_as_the_published_one(name):
    written = json.loads(str(golden(name)["config"]))
    assert config_from_hf(written, "written") == config_from_hf(FAMILY[name].config, "published")
