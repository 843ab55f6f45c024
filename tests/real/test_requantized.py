"""A real Gemma as llama.cpp requantizes it, in every mixture: it opens, stays packed, and gives llama.cpp's answers.

Packed, llama.cpp rounds activations, which moves its loss by up to 0.9 %. So answers, and the loss without rounding,
are compared with those of the same numbers in float32. With rounding the loss is at most 0.5 % above llama.cpp's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.files.real_files import q8_0_file
from langchain_gemma_jax import engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.errors import UnsupportedModelError
from langchain_gemma_jax.models.compare import TEXT, score
from langchain_gemma_jax.models.gguf.gguf_source import open_source
from langchain_gemma_jax.models.gguf.mixture import NAMES as FILE_TYPES
from langchain_gemma_jax.models.gguf.mixture import mixture_of
from langchain_gemma_jax.models.loading.load import load
from tests.real.real_model import FILE, asked_of
from tests.real.test_real import PROMPTS, TIE, ids_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason="the real weights are not here: scripts/real fetches them"),
    pytest.mark.timeout(3000),
]

# Rows of this model are seldom whole blocks of 256, and llama.cpp takes IQ4_NL, Q4_0 or Q5_0 for those that are not.
CANNOT = {"NVFP4"}  # be written by llama.cpp's quantizer
NEWER = {"Q2_0"}  # than the release of the ``gguf`` package whose types are read here
NAMES = tuple(name for name in FILE_TYPES.values() if name not in CANNOT)
COUNT = 48  # tokens of an answer
ASKED = PROMPTS[:3]
FOLDER = FILE.parent / "requantized"


@pytest.fixture(scope="module")
def asked():
    with load(FILE, progress=False) as model:
        prompts = [ids_of(model, prompt) for prompt in ASKED]
        return {"page": ids_of(model, TEXT), "prompts": prompts, "count": COUNT, "file": str(q8_0_file())}


def found_by_llama_cpp(asked):
    found = asked_of("llama", FOLDER, asked, "llama_requantized")
    if found is None:
        pytest.skip("llama.cpp is not here: scripts/real --all")
    return found


def test_every_file_type_that_llama_cpp_has_is_tried(asked):
    found = found_by_llama_cpp({**asked, "names": [], "made": [*NEWER]})
    assert set(found["types"]) == {*NAMES, *CANNOT, *NEWER}
    for path in found["made"]:
        with pytest.raises(UnsupportedModelError, match="Q2_0"):
            load(path, progress=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_mixture_of_llama_cpps(name, asked):
    theirs = found_by_llama_cpp({**asked, "names": [name], "made": []})["files"][name]
    path = Path(theirs["path"])
    mixture = mixture_of(path)
    assert mixture.partition(":")[0] == name
    with open_source(path) as source:
        stored = sum(entry.end - entry.begin for entry in source.header.tensors.values())
    with load(path, progress=False) as model:
        rounded = score(model, TEXT).loss
    with load(path, activations="float32", dtype="float32", progress=False) as model:
        resident = model.nbytes
        loss = score(model, TEXT).loss
        served, equal, ties = engine().serve(model), 0, []
        for prompt, their in zip(asked["prompts"], theirs["answers"], strict=True):
            said = engine().submit(served, prompt, Sampling(max_tokens=COUNT, ignore_eos=True)).result().ids
            pairs = enumerate(zip(said, their["tokens"], strict=True))
            other = next((i for i, pair in pairs if len(set(pair)) > 1), None)
            equal += other is None
            if other is not None:
                ties.append(their["margins"][other])
        engine().unload(served)
    shown = f"loss {loss:.5f}, with activations rounded {rounded:.5f}; llama.cpp's {theirs['packed']:.5f}"
    print(  # noqa: T201  for people
        f"{mixture}: {resident / stored:.3f} of the file, {shown}, dense {theirs['dense']:.5f}; {equal} of "
        f"{len(ASKED)} answers equal, the others as far as ties of {[round(tie, 4) for tie in ties]}"
    )
    assert resident < 1.05 * stored
    assert loss == pytest.approx(theirs["dense"], rel=2e-4)
    assert rounded < 1.005 * theirs["packed"]
    assert all(tie < TIE for tie in ties)
