"""The cost of packed weights in quality is measured on a text."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.compare import TEXT, compare, score
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.seams.kv_cache import allocate


@pytest.mark.long
def test_losses_are_those_of_one_pass_over_the_text():
    with load("sprout-s", dtype="float32", progress=False) as model:
        text = TEXT[:300]
        ids = [model.tokenizer.bos_id, *model.tokenizer.encode_text(text)]
        assert len(ids) > 65  # more than a chunk
        tokens, zero = jnp.asarray([ids], jnp.int32), jnp.zeros(1, jnp.int32)
        cache = allocate(model.config.cache_layout, 1, len(ids), "float32")
        hidden, _ = forward(model.params, model.config, model.recipe, tokens, zero, zero + len(ids), cache)
        scores = np.asarray(logits(model.params, model.config, model.recipe, hidden))[0, :-1].astype(np.float64)
        odds = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        found = score(model, text)
        assert found.loss == pytest.approx(-odds[np.arange(len(odds)), ids[1:]].mean(), rel=1e-5)
        assert found.best == tuple(scores.argmax(-1))


@pytest.mark.slow
def test_a_packed_model_beside_the_dense_one():
    with load("sprout-s", dtype="float32", progress=False) as dense:
        found = {}
        for weights in ("int8", "int4"):
            with load("sprout-s", dtype="float32", weights=weights, progress=False) as packed:
                found[weights] = compare(dense, packed, TEXT[:200])
        assert abs(found["int8"].packed_loss - found["int8"].dense_loss) < 0.02 * found["int8"].dense_loss
        assert found["int8"].agreement > 0.9
        assert found["int8"].agreement >= found["int4"].agreement > 0.5
        with pytest.raises(InputError, match="expected a text of 1 to"):
            score(dense, "")
