"""Each family of docs/torchax.md does what the page says of it: served as torch has it, or refused by its reason."""

from __future__ import annotations

import json
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax import Ladders
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.seams import kv_cache
from tests.torchax.matrix import CHUNKED, KERNELS, OWN, PAGE, REFUSED, SERVED, SINKS, tables, with_tables
from tests.torchax.torch_models import greedy_by_torch, needs_torch, save_tokenizer, scores, text

LADDERS = Ladders(chunks=(16,), capacities=(128,), rows=(1, 4), draft=0)
CLOSE = 2e-5  # of the largest score
COUNT = 16
of_torch = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]


def test_the_page_has_the_tables_that_are_tested():
    assert with_tables(PAGE.read_text()) == PAGE.read_text(), "python -m tests.torchax.matrix writes them"
    kinds = {one.kind for one in (*SERVED.values(), *REFUSED.values())}
    assert len(kinds) > 60
    assert all(f"`{kind}`" in "".join(tables().values()) for kind in kinds)


@pytest.fixture
def quick_compiles():
    """Many families, each with programs of its own: what a program computes is not changed by how fast it is."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


def furthest(model, module, seed):
    """How far scores are from torch's, for two rows of different lengths, read as a chunk and then token by token."""
    kind, recipe, rng = model.architecture, model.recipe, random.Random(seed)
    rows, lengths = [text(rng, 48), text(rng, 48)], [32, 19]
    want = [scores(module, row) for row in rows]

    @jax.jit
    def step(params, tokens, start, count, cache):
        hidden, cache = kind.forward(params, recipe, tokens, start, count, cache, None)
        return kind.logits(params, recipe, hidden), cache

    cache = kv_cache.allocate(kind.cache_layout, len(rows), 128, "float32", jax.devices()[0])
    chunk = jnp.asarray([row[:32] for row in rows], jnp.int32)
    found, cache = step(model.params, chunk, jnp.zeros(2, jnp.int32), jnp.asarray(lengths, jnp.int32), cache)
    most = [np.abs(np.asarray(found)[row, :length] - want[row][:length]).max() for row, length in enumerate(lengths)]
    for _ in range(12):
        one = jnp.asarray([[row[length]] for row, length in zip(rows, lengths, strict=True)], jnp.int32)
        found, cache = step(model.params, one, jnp.asarray(lengths, jnp.int32), jnp.ones(2, jnp.int32), cache)
        most += [np.abs(np.asarray(found)[row, 0] - want[row][length]).max() for row, length in enumerate(lengths)]
        lengths = [length + 1 for length in lengths]
    return max(most) / max(np.abs(each).max() for each in want)


@pytest.mark.usefixtures("quick_compiles")
@pytest.mark.parametrize("name", [pytest.param(name, marks=of_torch) for name in SERVED])
def test_a_family_is_served_as_torch_has_it(name, tmp_path):
    family = SERVED[name]
    module = family.save(tmp_path, name)
    rng, greedy = random.Random(2), Sampling(max_tokens=COUNT, ignore_eos=True)
    engine = Engine(Settings(ladders=LADDERS, guards="raise", drafts=False))
    try:
        with load(f"torchax:{tmp_path}") as model:
            facts = model.architecture.facts
            assert facts.model_type == family.kind
            ruled, sinks = (any(getattr(kind, what) for kind in facts.kinds) for what in ("ruled", "sinks"))
            assert (OWN if facts.shapes else CHUNKED if ruled else SINKS if sinks else KERNELS) == family.how
            assert furthest(model, module, seed=1) < CLOSE
            served, valid = engine.serve(model), model.tokenizer.vocab_size
            prompts = [text(rng, length) for length in (3, 21, 40)]
            together = [engine.submit(served, prompt, greedy, scope=str(n)) for n, prompt in enumerate(prompts)]
            answers = [list(one.result().ids) for one in together]
            assert answers == [greedy_by_torch(module, prompt, COUNT, valid) for prompt in prompts]
            for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
                longer = [*prompt, *answer, *text(rng, 7)]
                kept = engine.submit(served, longer, greedy, scope=str(number)).result()
                cold = engine.submit(served, longer, greedy, scope=f"cold {number}").result()
                assert kept.ids == cold.ids
                assert (kept.reused_tokens >= len(prompt) + len(answer) - 1, cold.reused_tokens) == (True, 0)
            report = engine.report()
            assert report.guard_trips == {}
            assert report.programs <= report.program_bound
    finally:
        engine.close(60)


@pytest.mark.parametrize("name", [pytest.param(name, marks=of_torch) for name in REFUSED])
def test_a_family_is_refused_by_its_reason_before_weights_are_read(name, tmp_path):
    family = REFUSED[name]
    save_tokenizer(tmp_path)
    config = {"vocab_size": 407, "bos_token_id": None, "eos_token_id": 2, "pad_token_id": 0, **family.fields}
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": family.kind}))
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(UnsupportedModelError) as caught:
        load(f"torchax:{tmp_path}")
    said = str(caught.value)
    assert family.sentence in said
    assert not {"PassCache", "MaskRule", "gemma_jax", "has no attribute"} & set(said.replace("'", " ").split())
