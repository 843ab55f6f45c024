"""EmbeddingGemma in a GGUF file: the vectors of the dense model that it stands for."""

from __future__ import annotations

from itertools import cycle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax import GemmaJaxEmbeddings
from langchain_gemma_jax.errors import ConfigError, TensorMismatchError
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.configuration.model_config import EmbeddingConfig
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import assemble
from tests.models.gguf.make import CONFIGS, QUANTIZED, of_one_kind, small_tokenizer, write
from tests.models.packed.test_from_file import read

PROMPTS = (("query", "task: search result | query: "), ("document", "title: none | text: "))
CONFIG = CONFIGS["gemma3"].replace(embedding=EmbeddingConfig(((512, 256), (256, 512)), prompts=PROMPTS))

vectors = jax.jit(text_vectors, static_argnums=(1, 2))


def written(path, kind_of, config=CONFIG, **options):
    return write(path, config, kind_of, tokenizer=small_tokenizer(), **options)


@pytest.mark.long
def test_vectors_are_those_of_the_dense_model(tmp_path):
    kinds = cycle(QUANTIZED)
    dense = written(tmp_path / "x.gguf", lambda _: next(kinds))
    found, recipe, params, _ = read(tmp_path / "x.gguf")
    assert found == CONFIG
    whole = assemble((at, jnp.asarray(dense[at])) for at, _ in walk(abstract(CONFIG, "float32")))
    tokens = jnp.asarray(np.random.default_rng(0).integers(3, CONFIG.vocab_size, (2, 40)), jnp.int32)
    count = jnp.asarray([40, 13], jnp.int32)
    ours, theirs = (
        np.asarray(vectors(weights, CONFIG, how, tokens, count))
        for weights, how in ((params, recipe), (whole, Recipe("float32")))
    )
    np.testing.assert_allclose(np.linalg.norm(theirs, axis=-1), 1, rtol=1e-5)
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.long
def test_texts_are_embedded_from_a_file(tmp_path):
    written(tmp_path / "x.gguf", of_one_kind("IQ4_XS"))
    embeddings = GemmaJaxEmbeddings(model=str(tmp_path / "x.gguf"))
    query, (first, second) = embeddings.embed_query("ab a"), embeddings.embed_documents(["ab a", "b"])
    assert len(query) == len(first) == 256
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-4)
    assert first != second != query


def test_other_poolings_and_matrices_that_do_not_follow_each_other_are_refused(tmp_path):
    def last(writer):
        writer.kv_data[0].pop("gemma-embedding.pooling_type")
        writer.add_uint32("gemma-embedding.pooling_type", 3)

    written(tmp_path / "x.gguf", of_one_kind("Q8_0"), more=last)
    with pytest.raises(ConfigError, match="pooling_type to be 1, the mean of all tokens, found 3"):
        open_gguf(tmp_path / "x.gguf")
    written(tmp_path / "y.gguf", of_one_kind("Q8_0"), CONFIG.replace(embedding=EmbeddingConfig(((256, 512),))))
    with pytest.raises(TensorMismatchError, match="a matrix of 256 inputs behind the mean, found 512"):
        open_gguf(tmp_path / "y.gguf")
