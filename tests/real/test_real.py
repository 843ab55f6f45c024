"""A real Gemma, packed: its loss, its answers, and what is promised of calls and objects, on real token statistics."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax, engine
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.models.load import load
from langchain_gemma_jax.models.packed.compare import TEXT, score
from tests.real.real_model import FILE, dequantised

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.exists(), reason="the real weights are not here: scripts/real fetches them"),
    pytest.mark.timeout(3000),
]

PROMPTS = ("The capital of France is", "def fibonacci(n):\n", "Die Hauptstadt von Deutschland ist")
WORDS = ("king", "queen", "dog", "tree", "house", "ship", "star", "fox")
TENSOR_BYTES = 246_000_000  # of the file without its vocabulary


@pytest.fixture(scope="module")
def packed():
    with load(FILE, progress=False) as model:
        yield model


@pytest.fixture(scope="module")
def dense(packed):
    model = dequantised(packed)
    yield model
    model.close()


def test_resident_bytes_are_the_files(packed):
    assert FILE.stat().st_size - 10_000_000 < packed.nbytes < 1.05 * TENSOR_BYTES


def test_texts_come_back_as_they_were(packed):
    texts = (
        "Zürich, 23 °C",
        "Москва́",
        "日本語の文",
        "हिन्दी",
        "مرحبا بالعالم",
        "한국어",
        "ไทย",
        "🙂🏽",
        "\t\n\n   x",
        "<bos> <b>",
    )
    for text in texts:
        assert packed.tokenizer.decode(packed.tokenizer.encode_text(text)) == text
    assert packed.tokenizer.encode_text("The capital of France is") == [818, 5279, 529, 7001, 563]


def test_the_loss_on_a_page_is_the_dense_models(packed, dense):
    ours, theirs = score(packed, TEXT), score(dense, TEXT)
    assert ours.loss == pytest.approx(theirs.loss, rel=0.005)
    other = sum(one != two for one, two in zip(ours.best, theirs.best, strict=True))
    assert other <= 0.01 * len(ours.best)


def greedy(model, prompt, count=24):
    served = engine().serve(model)
    ids = [model.tokenizer.bos_id, *model.tokenizer.encode_text(prompt)]
    return engine().submit(served, ids, Sampling(max_tokens=count, ignore_eos=True)).result().ids


def test_greedy_answers_are_the_dense_models(packed, dense):
    alike = sum(greedy(packed, prompt) == greedy(dense, prompt) for prompt in PROMPTS)
    assert alike >= len(PROMPTS) - 1  # two scores may be as good as equal


def test_eight_at_once_are_eight_one_after_another(packed):
    served = engine().serve(packed)
    start = packed.tokenizer.encode_text("Once upon a time there was a ")
    prompts = [[2, *start, *packed.tokenizer.encode_text(word)] for word in WORDS]
    wanted = Sampling(max_tokens=6, ignore_eos=True)
    together = [each.result().ids for each in [engine().submit(served, ids, wanted) for ids in prompts]]
    alone = [engine().submit(served, ids, wanted).result().ids for ids in prompts]
    assert sum(one == two for one, two in zip(together, alone, strict=True)) >= 7
    assert engine().report().reused_tokens > 0


class City(BaseModel):
    """A city."""

    name: str = Field(max_length=20)
    inhabitants: int = Field(ge=0, le=50_000_000)


def test_objects_and_calls_are_valid(packed):
    llm = ChatGemmaJax(model=str(FILE), temperature=1.0, seed=3, max_tokens=80)
    found = llm.with_structured_output(City).invoke("Describe Paris.")
    assert isinstance(found, City)
    answer = llm.bind_tools([City], tool_choice="any").invoke("Look up Paris.")
    assert answer.tool_calls or answer.invalid_tool_calls
    for call in answer.tool_calls:
        City.model_validate(call["args"])
        json.dumps(call["args"])
