"""Models of transformers, served by the engine: the same scores and words as torch's, with all that it does."""

from __future__ import annotations

import random

import pytest

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from tests.torchax.torch_models import greedy_by_torch, needs_torch, text

pytestmark = [needs_torch, pytest.mark.slow, pytest.mark.filterwarnings("default")]


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
