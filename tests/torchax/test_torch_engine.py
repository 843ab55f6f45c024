"""Models of transformers, served by the engine: the same scores and words as torch's, with all that it does."""

from __future__ import annotations

import gc
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.models.loading.load import load
from langchain_gemma_jax.models.seams import kv_cache
from tests.torchax.torch_models import FAMILIES, greedy_by_torch, needs_torch, save_model, scores

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", params=list(FAMILIES))
def both(request, tmp_path_factory):
    """A model through torchax, and torch's."""
    folder = tmp_path_factory.mktemp("torch-model")
    module = save_model(folder, request.param)
    with load(f"torchax:{folder}") as model:
        yield model, module


def text(rng: random.Random, length: int) -> list[int]:
    return [rng.randrange(10, 340) for _ in range(length)]


def test_scores_are_torchs_for_rows_of_different_lengths(both):
    model, module = both
    kind, recipe = model.architecture, model.recipe
    rng = random.Random(1)
    rows, lengths = [text(rng, 60), text(rng, 60)], [32, 19]
    want = [scores(module, row) for row in rows]

    @jax.jit
    def step(params, tokens, start, count, cache):
        hidden, cache = kind.forward(params, recipe, tokens, start, count, cache, None)
        return kind.logits(params, recipe, hidden), cache

    cache = kv_cache.allocate(kind.cache_layout, len(rows), 128, "float32", jax.devices()[0])
    chunk = jnp.asarray([row[:32] for row in rows], jnp.int32)
    found, cache = step(model.params, chunk, jnp.zeros(2, jnp.int32), jnp.asarray(lengths, jnp.int32), cache)
    for row, length in enumerate(lengths):
        assert np.abs(np.asarray(found)[row, :length] - want[row][:length]).max() < 1e-4
    for _ in range(25):
        one = jnp.asarray([[row[length]] for row, length in zip(rows, lengths, strict=True)], jnp.int32)
        found, cache = step(model.params, one, jnp.asarray(lengths, jnp.int32), jnp.ones(2, jnp.int32), cache)
        for row, length in enumerate(lengths):
            assert np.abs(np.asarray(found)[row, 0] - want[row][length]).max() < 1e-4
        lengths = [length + 1 for length in lengths]
    assert step._cache_size() == 2, "one program for the chunk, one for a step"


def test_the_engine_says_what_torch_says_and_reuse_changes_nothing(both):
    model, module = both
    engine = Engine(Settings(guards="raise"))
    try:
        served, rng = engine.serve(model), random.Random(2)
        greedy = Sampling(max_tokens=64, ignore_eos=True)
        valid = model.tokenizer.vocab_size
        prompts = [text(rng, length) for length in (3, 21, 50)]
        together = [engine.submit(served, prompt, greedy, scope=str(n)) for n, prompt in enumerate(prompts)]
        answers = [list(one.result().ids) for one in together]
        assert answers == [greedy_by_torch(module, prompt, 64, valid) for prompt in prompts]
        for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
            longer = [*prompt, *answer, *text(rng, 7)]
            done = engine.submit(served, longer, Sampling(max_tokens=16, ignore_eos=True), scope=str(number)).result()
            assert list(done.ids) == greedy_by_torch(module, longer, 16, valid)
            assert done.reused_tokens >= len(prompt) + len(answer) - 1
        report = engine.report()
        assert report.guard_trips == {}
        assert report.programs <= report.program_bound
    finally:
        engine.close(30)


def test_no_second_copy_of_the_weights_stays(tmp_path):
    import torch

    def held():
        gc.collect()
        known = (each for each in gc.get_objects() if type(each) in {torch.Tensor, torch.nn.Parameter})
        return {id(each): each.numel() for each in known if each.device.type == "cpu"}

    module = save_model(tmp_path, "llama 3")
    most = max(parameter.numel() for parameter in module.parameters())
    before = held()  # torch's own model, which the other tests compare with
    with load(f"torchax:{tmp_path}") as model:
        assert model.nbytes > 4 * most
        assert max((size for key, size in held().items() if key not in before), default=0) < most // 4
    assert module is not None
