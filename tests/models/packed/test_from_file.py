"""A model in block formats gives the scores of the dense float32 model that it stands for."""

from __future__ import annotations

import functools
import itertools
import tracemalloc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.gemma.forward import forward, logits
from langchain_gemma_jax.models.gguf.opening import open_gguf
from langchain_gemma_jax.models.loading.place import place
from langchain_gemma_jax.models.packed.choose_forms import BY_KERNELS
from langchain_gemma_jax.models.packed.from_file import as_in_file
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForm, BlockForms
from langchain_gemma_jax.models.seams.kv_cache import allocate
from langchain_gemma_jax.models.seams.params import assemble
from langchain_gemma_jax.models.seams.weights import total_bytes
from tests.models.gguf.make import CONFIGS, KINDS, QUANTIZED, mixed, of_one_kind, write

TOKENS = 12
FAST = ("gemma, untied", "gemma3")
FORMS = [BlockForms(form, form, form) for form in BlockForm]


@functools.lru_cache(maxsize=2)  # the dense twin's is that of every format; a process has room for so many programs
def scores_of(recipe, config):
    """A compiled program: the scores of a chunk's tokens, and of one token more."""

    @jax.jit
    def scores(params, tokens):
        cache = allocate(config.cache_layout, 1, 32, "float32")
        zero, found = jnp.zeros(1, jnp.int32), []
        for at, count in ((0, TOKENS - 1), (TOKENS - 1, 1)):
            chunk = tokens[:, at : at + count]
            hidden, cache = forward(params, config, recipe, chunk, zero + at, zero + count, cache)
            found.append(logits(params, config, recipe, hidden))
        return jnp.concatenate(found, axis=1)

    return scores


def read(path, forms=DEFAULT):
    """The configuration, the recipe and the packed parameters of a file."""
    config, tensors, naming = open_gguf(path).checkpoint
    with tensors:
        storage = as_in_file(tensors, naming, config, "float32", forms)
        recipe = Recipe("float32", storage=storage)
        device = jax.local_devices()[0]
        params = place(tensors, naming, config, "float32", recipe.layout, device, storage=storage)
        stored = sum(entry.end - entry.begin for entry in tensors.header.tensors.values())
    return config, recipe, params, stored


def compare(tmp_path, config, kind_of, seeds, forms=DEFAULT, **options):
    """Hold some files to their dense twins. Gives the share of tokens of which the best one differs."""
    other = 0
    for seed in seeds:
        path = tmp_path / f"{seed}.gguf"
        dense = write(path, config, kind_of(seed), seed, **options)
        found, recipe, params, stored = read(path, forms)
        assert found == config
        assert total_bytes(params) == total_bytes(recipe.abstract(config)) <= 1.05 * stored
        plain = Recipe("float32")
        whole = assemble((at, jnp.asarray(dense[at])) for at, _ in walk(abstract(config, "float32")))
        tokens = jnp.asarray(np.random.default_rng(seed).integers(3, config.vocab_size, (1, TOKENS)), jnp.int32)
        ours, theirs = (
            np.asarray(scores_of(one, config)(weights, tokens)) for one, weights in ((recipe, params), (plain, whole))
        )
        spread = theirs.std(-1, keepdims=True)
        assert np.abs(ours - theirs).max() <= 2e-3 * spread.min()
        other += int((ours.argmax(-1) != theirs.argmax(-1)).sum())
        for leaf in jax.tree.leaves(params):
            leaf.delete()
        path.unlink()
    return other / (len(seeds) * TOKENS)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CONFIGS]
)
def test_every_architecture_with_formats_that_differ_by_tensor(tmp_path, name):
    assert compare(tmp_path, CONFIGS[name], mixed, [0]) == 0


def one_after_another(_):
    """Every format in turn, from tensor to tensor."""
    kinds = itertools.cycle(QUANTIZED)
    return lambda _: next(kinds)


@pytest.mark.long
@pytest.mark.parametrize("forms", [DEFAULT, BY_KERNELS], ids=["XLA", "kernels"])
def test_a_file_of_every_format_stays_packed_and_has_the_dense_models_best_tokens(tmp_path, forms):
    config = CONFIGS["gemma, untied"].replace(layers=CONFIGS["gemma, untied"].layers * 2)  # 30 matrices
    assert compare(tmp_path, config, one_after_another, [0], forms) == 0


def test_loading_takes_little_more_memory_than_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("langchain_gemma_jax.models.gguf.gguf_source.PIECE_BYTES", 16 << 10)
    config = CONFIGS["gemma"].replace(vocab_size=1 << 15)
    path = tmp_path / "x.gguf"
    write(path, config, of_one_kind("Q4_K"))
    read(path)  # what is made once a process
    tracemalloc.start()
    try:
        _, _, params, stored = read(path)
        assert total_bytes(params) <= tracemalloc.get_traced_memory()[1] <= 1.1 * stored
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_older_files_have_the_experts_gates_apart(tmp_path):
    assert compare(tmp_path, CONFIGS["gemma4, experts"], mixed, [1], experts_apart=True) == 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["gemma, untied", "gemma4, experts"])
@pytest.mark.parametrize("forms", [DEFAULT, BY_KERNELS], ids=["XLA", "kernels"])
def test_factors_of_matrices_and_of_experts(tmp_path, name, forms):
    kinds = itertools.cycle(["NVFP4", "NVFP4", "NVFP4", "BF16", "F32"])  # never several in a row alike, nor all unlike
    assert compare(tmp_path, CONFIGS[name], lambda _: lambda _: next(kinds), [3], forms, factors=True) == 0
    assert (
        compare(tmp_path, CONFIGS[name], lambda _: of_one_kind("NVFP4"), [4], forms, factors=True, experts_apart=True)
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: forms.one_row)
def test_every_form_of_the_product_gives_the_same_scores(tmp_path, forms):
    assert compare(tmp_path, CONFIGS["gemma4, experts"], mixed, [2], forms) == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONFIGS)
def test_every_format_in_every_architecture(tmp_path, name, kind):
    assert compare(tmp_path, CONFIGS[name], lambda _: of_one_kind(kind), range(10)) <= 0.01
