"""A real Gemma as llama.cpp requantises it, in every mixture: it opens, stays packed, and gives llama.cpp's answers.

Packed, llama.cpp rounds activations, which moves its loss by up to 0.8 %. So losses and answers are compared with those
of the same numbers in float32; the packed loss is shown beside them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.files.real_files import q8_0_file
from langchain_gemma_jax import engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.models.compare import TEXT, score
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.mixture import mixture_of
from langchain_gemma_jax.models.loading.load import load
from tests.real.real_model import FILE, asked_of
from tests.real.test_real import COUNT, PROMPTS, TIE, ids_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason="the real weights are not here: scripts/real fetches them"),
    pytest.mark.timeout(3000),
]

# Rows of this model are seldom whole blocks of 256, and llama.cpp takes IQ4_NL, Q4_0 or Q5_0 for those that are not.
NAMES = (
    "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "IQ4_XS", "IQ4_NL", "IQ3_M", "IQ3_S", "IQ3_XXS", "IQ2_M", "IQ2_S", "IQ2_XS",
    "IQ2_XXS", "IQ1_M", "IQ1_S", "TQ1_0", "TQ2_0",
)  # fmt: skip
FOLDER = FILE.parent / "requantised"


@pytest.fixture(scope="module")
def asked():
    with load(FILE, progress=False) as model:
        return {"page": ids_of(model, TEXT), "prompts": [ids_of(model, prompt) for prompt in PROMPTS], "count": COUNT}


@pytest.mark.parametrize("name", NAMES)
def test_a_mixture_of_llama_cpps(name, asked):
    asked = {**asked, "file": str(q8_0_file()), "names": [name]}
    found = asked_of("llama", FOLDER, asked, "llama_requantised")
    if found is None:
        pytest.skip("llama.cpp is not here: scripts/real --all")
    theirs = found[name]
    path = Path(theirs["path"])
    assert mixture_of(path).startswith(f"{name}: ")
    with load(path, activations="float32", progress=False) as model:
        with open_source(path) as source:
            stored = sum(entry.end - entry.begin for entry in source.header.tensors.values())
        assert model.nbytes < 1.05 * stored
        loss = score(model, TEXT).loss
        served, equal = engine().serve(model), 0
        for prompt, their in zip(asked["prompts"], theirs["answers"], strict=True):
            said = engine().submit(served, prompt, Sampling(max_tokens=COUNT, ignore_eos=True)).result().ids
            other = next(
                (i for i, pair in enumerate(zip(said, their["tokens"], strict=True)) if len(set(pair)) > 1), None
            )
            equal += other is None
            assert other is None or their["margins"][other] < TIE, (prompt, other, their["margins"][other])
        engine().unload(served)
    found = f"loss {loss:.5f}, llama.cpp's {theirs['packed']:.5f}, dense {theirs['dense']:.5f}"
    print(f"{mixture_of(path)}: {found}; {equal} of {len(PROMPTS)} answers equal")  # noqa: T201  for people
    assert loss == pytest.approx(theirs["dense"], rel=2e-4)
