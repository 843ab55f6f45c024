"""The real Gemma 3 270M, dequantized, says through torchax what it says through our own forward pass, and torch's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from langchain_gemma_jax import Ladders
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.models.loading.load import load
from tests.torchax.torch_models import greedy_by_torch, needs_torch

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "real" / "float32"

pytestmark = [
    needs_torch,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(600),
    pytest.mark.skipif(not FOLDER.exists(), reason="needs the real weights: benchmarks/files/real.py writes them"),
]

TEXTS = ("The capital of Norway is", "Once upon a time there was a farmer who had three sons.", "1, 2, 3, 4, 5,")
TOKENS = 32


def test_the_real_gemma_says_the_same_in_three_ways():
    import torch
    import transformers

    module = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()
    greedy = Sampling(max_tokens=TOKENS, ignore_eos=True, logprobs=True)
    said, scored = {}, {}
    for source in (f"torchax:{FOLDER}", str(FOLDER)):
        engine = Engine(Settings(ladders=Ladders(chunks=(16,), capacities=(128,), rows=(1,), draft=0)))
        try:
            with load(source, dtype="float32", progress=False) as model:
                prompts = [[2, *model.tokenizer.encode_text(text)] for text in TEXTS]
                served = engine.serve(model)
                done = [engine.submit(served, prompt, greedy).result() for prompt in prompts]
                said[source] = [list(one.ids) for one in done]
                scored[source] = np.array([[each.logprob for each in one.logprobs] for one in done])
        finally:
            engine.close(60)
    through, own = said.values()
    assert through == [greedy_by_torch(module, prompt, TOKENS, 262_144) for prompt in prompts]
    assert through == own
    one, other = scored.values()
    assert np.abs(one - other).max() < 1e-3
