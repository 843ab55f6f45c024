"""The engine serves GGUF files as they are: their packed bytes are what it reserves, counts, frees and brings back."""

from __future__ import annotations

import jax
import pytest

from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.prompt import MediaSpan, Prompt, TokenSpan
from langchain_gemma_jax.errors import CheckpointError
from langchain_gemma_jax.media.medium import Picture
from langchain_gemma_jax.models.configuration.abstract import abstract, walk
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.packed.blocks import BlockMatrix
from langchain_gemma_jax.models.recipes import Recipe
from langchain_gemma_jax.models.seams.params import assemble
from langchain_gemma_jax.models.seams.weights import total_bytes
from tests.engine.faults_support import SMALL
from tests.engine.residents_support import baseline, constants, on_device, status
from tests.models.encoders.make import write_encoders, write_text
from tests.models.gguf.make import CONFIGS, small_tokenizer, write
from tests.parity.media_models import picture

CONFIG = CONFIGS["gemma, untied"]  # a tied one with random weights repeats what it read last
PROMPT = list(range(6, 30))
SEES = "gemma-3-4b-vision"
EXACT = {"activations": "float32"}  # compared with a dense model


def kind_of(name: str) -> str:
    """As llama.cpp mixes them: values in more bits than the rest."""
    return "Q6_K" if "attn_v" in name or "token_embd" in name else "Q4_K"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two files of one shape with other weights, and the dense parameters of each."""
    folder = tmp_path_factory.mktemp("gguf")
    return {
        path: write(path, CONFIG, kind_of, seed, tokenizer=small_tokenizer())
        for seed in (0, 1)
        for path in [folder / f"tiny-{seed}-Q4_K_M.gguf"]
    }


def said(engine, served, count=6):
    return engine.submit(served, PROMPT, Sampling(max_tokens=count, ignore_eos=True)).result().ids


@pytest.mark.long
def test_packed_bytes_are_booked_and_an_evicted_file_comes_back_unless_it_was_changed(engine_of, files, tmp_path):
    (first, dense), (second, _) = files.items()
    before, engine = baseline(), engine_of(ladders=SMALL)
    served = engine.load(str(first), **EXACT)
    model, entry = served.model, engine._owner.models.known[served].entry
    assert served.name == "tiny-0-Q4_K_M"
    assert isinstance(model.params["embed"], BlockMatrix)
    assert entry.weights == model.nbytes == total_bytes(model.recipe.abstract(model.config))
    assert status(engine, served).weights == on_device() - before - constants(engine)
    stored = first.stat().st_size
    assert 0.95 * stored < entry.weights < 1.05 * stored
    whole = assemble((at, jax.device_put(dense[at], model.device)) for at, _ in walk(abstract(CONFIG, "float32")))
    twin = Model(model.architecture, whole, model.tokenizer, Recipe("float32"), "dense")
    answer = said(engine, served)
    assert answer == said(engine, engine.serve(twin))
    assert entry.weights < 0.3 * twin.nbytes
    need, grown = entry.need, 8 * entry.floor
    assert engine.close(30)

    engine = engine_of(ladders=SMALL, memory_budget=2 * (need + grown))  # a dense one would not fit beside it
    one, two = engine.load(str(first), **EXACT), engine.load(str(second), **EXACT)
    assert said(engine, one) == answer != said(engine, two)
    assert engine.report().models_evicted == 0
    assert engine.close(30)

    engine = engine_of(ladders=SMALL, memory_budget=2 * need - 1)
    path = tmp_path / "tiny.gguf"
    path.write_bytes(first.read_bytes())
    three, four = engine.load(str(path), **EXACT), engine.load(str(second), **EXACT)
    assert three.model.closed
    assert said(engine, three) == answer  # read again
    assert four.model.closed
    assert said(engine, four)
    write(path, CONFIG, lambda _: "Q8_0", 0, tokenizer=small_tokenizer())
    with pytest.raises(CheckpointError, match="the model 'tiny' that was loaded before"):
        said(engine, three)
    assert engine.close(30)
    for each in (one, two, three, four, served):
        each.model.close()
    twin.close()


@pytest.mark.long
def test_an_image_in_a_conversation_with_a_file_is_encoded_once(tmp_path, engine_of):
    path = tmp_path / "tiny.gguf"
    write_text(path, SEES)
    write_encoders(tmp_path / "mmproj-tiny.gguf", SEES)
    engine = engine_of(ladders=SMALL)
    served = engine.load(str(path), dtype="float32")
    model = served.model
    placed = model.media.place(Picture(picture(SEES, 0, 3)))
    span = MediaSpan(placed.placeholders, placed.digest, placed.inputs)
    spans = [TokenSpan((2, 20, *placed.before)), span, TokenSpan((*placed.after, 21))]
    asked = Sampling(max_tokens=4, ignore_eos=True)
    first = engine.submit(served, Prompt(tuple(spans)), asked).result()
    again = engine.submit(served, Prompt((*spans, TokenSpan((*first.ids, 22)))), asked).result()
    assert (first.media_tokens, again.media_tokens, engine.report().media_encoded) == (9, 9, 1)
    assert again.reused_tokens >= len(placed) + 3
    assert model.encoders.nbytes == model.encoders.nbytes_of(0, "float32")
