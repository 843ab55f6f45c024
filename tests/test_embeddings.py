"""Vectors of texts through LangChain's surface, in the engine that answers too."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from langchain_gemma_jax import ChatGemmaJax, GemmaJaxEmbeddings, GemmaJaxLLM, engine, errors
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import TextLadder
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.models.configuration.division import why_not
from langchain_gemma_jax.models.gemma.text_vector import text_vectors
from tests.chat.tiny import tiny_folder
from tests.tiny_embedder import CONTEXT, PROMPTS, tiny_embedder
from tests.waiting import LONG, until

read_alone = jax.jit(text_vectors, static_argnums=(1, 2))

TEXTS = ["A", "HELLO", "HELLO AGAIN", "B" * 40, "", "ΩMEGA 😀", "C" * 60, "Z", "Y", "X", "W", "V", "U"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_embedder(tmp_path_factory.mktemp("embedder") / "model"))


@pytest.fixture(scope="module", autouse=True)
def running():
    """An engine of this file's own: whatever trips a guard is an error."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "_engine", Engine(Settings(guards="raise")))
        yield process.engine()
        assert process.engine().close(30)
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def embeddings(folder):
    return GemmaJaxEmbeddings(model=folder)


def alone(folder, text):
    """A text's vector, read by itself and without an engine."""
    served = engine().load(folder)
    model, ids = served.model, [2, *served.model.tokenizer.encode_text(text), 1]
    tokens, count = np.array([[*ids, *[0] * (CONTEXT - len(ids))]], np.int32), np.array([len(ids)], np.int32)
    return np.asarray(read_alone(model.params, model.config, model.recipe, tokens, count))[0]


@pytest.mark.long
def test_texts_of_all_lengths_together_are_what_each_is_alone(embeddings, folder):
    found = np.array(embeddings.embed_documents(TEXTS))
    assert found.shape == (len(TEXTS), 16)
    for text, vector in zip(TEXTS, found, strict=True):
        assert vector @ alone(folder, PROMPTS["document"] + text) > 0.999999, text
    assert np.array(embeddings.embed_query("HELLO")) @ alone(folder, PROMPTS["query"] + "HELLO") > 0.999999
    with pytest.MonkeyPatch.context() as patch:  # all of them in one size of program, too: padding changes nothing
        patch.setattr(TextLadder, "for_context", classmethod(lambda cls, most: cls((most,))))
        engine().unload(engine().load(folder))
        np.testing.assert_allclose(np.array(embeddings.embed_documents(TEXTS)), found, atol=1e-6)
    engine().unload(engine().load(folder))


def test_prompts_are_the_model_s_unless_others_are_given(folder):
    plain = GemmaJaxEmbeddings(model=folder, query_prompt="", document_prompt="TITLE: A ")
    assert np.array(plain.embed_query("HELLO")) @ alone(folder, "HELLO") > 0.999999
    assert np.array(plain.embed_documents(["HELLO"])[0]) @ alone(folder, "TITLE: A HELLO") > 0.999999


def test_the_first_numbers_of_a_vector_have_the_length_1_again(embeddings, folder):
    whole = np.array(embeddings.embed_query("HELLO"))
    for size in (1, 5, 16):
        found = np.array(GemmaJaxEmbeddings(model=folder, dimensions=size).embed_query("HELLO"))
        np.testing.assert_allclose(found, whole[:size] / np.linalg.norm(whole[:size]), atol=1e-6)
    with pytest.raises(errors.InputError, match="vectors of 16 numbers; found 17"):
        GemmaJaxEmbeddings(model=folder, dimensions=17).embed_query("HELLO")


def test_a_text_that_is_too_long_is_refused_or_cut(embeddings, folder):
    room = CONTEXT - 2 - len(PROMPTS["document"])
    fits, cut = "A" * room, "A" * (room + 1)
    embeddings.embed_documents([fits])
    with pytest.raises(errors.ContextLengthError, match=f"{CONTEXT + 1} tokens") as caught:
        embeddings.embed_documents(["A", cut])
    assert caught.value.__notes__[1:] == ["It is text 1 of those that were given."]
    found = GemmaJaxEmbeddings(model=folder, truncate=True).embed_documents([cut, fits])
    assert np.array(found[0]) @ np.array(found[1]) > 0.999999


def test_what_is_no_setting_or_no_text_is_refused(embeddings, folder):
    for wrong in ({"dimensions": 0}, {"dimensions": True}, {"query_prompt": 3}, {"truncate": 1}, {"dtype": "float16"}):
        with pytest.raises(errors.InputError, match=next(iter(wrong))):
            GemmaJaxEmbeddings(model=folder, **wrong)
    for wrong in ("one text", [1], [None]):
        with pytest.raises(errors.InputError, match="a list of strings"):
            embeddings.embed_documents(wrong)
    assert embeddings.embed_documents([]) == []
    assert GemmaJaxEmbeddings().model == "google/embeddinggemma-300m"


def test_a_model_that_writes_makes_no_vectors_and_the_other_way_round(folder, tmp_path):
    writer = str(tiny_folder(tmp_path / "writer", "gemma"))
    with pytest.raises(errors.UnsupportedModelError, match="makes no vectors"):
        GemmaJaxEmbeddings(model=writer).embed_query("HELLO")
    for ask in (ChatGemmaJax(model=folder).invoke, GemmaJaxLLM(model=folder).invoke):
        with pytest.raises(errors.UnsupportedModelError, match="Use it with GemmaJaxEmbeddings"):
            ask("HELLO")
    config = engine().load(folder).model.config
    assert why_not(config, 2) == "it makes vectors of texts, which one device does"
    assert why_not(config.replace(embedding=None), 2) is None


@pytest.mark.long
def test_a_second_time_compiles_nothing_and_a_warm_up_makes_all(folder, embeddings):
    served = engine().load(folder)
    made = engine().warmup(served, progress=False)
    keys = list(TextLadder.for_context(CONTEXT).program_keys())
    assert made.programs == len(keys) == 8
    before = engine().report().compiles
    embeddings.embed_documents(TEXTS)
    embeddings.embed_query("HELLO")
    assert engine().report().compiles == before
    assert engine().report().guard_trips == {}


def test_it_is_accounted_evicted_and_back_with_the_same_vectors(folder, embeddings):
    first, served = embeddings.embed_query("HELLO"), engine().load(folder)
    status = next(each for each in engine().models() if each.name == served.name)
    assert status.nbytes >= served.model.nbytes > 0
    engine().evict(served)
    until(lambda: served.model.closed)
    assert embeddings.embed_query("HELLO") == first


@pytest.mark.long
def test_many_threads_at_once_get_their_own(embeddings):
    expected = [embeddings.embed_documents([text])[0] for text in TEXTS]

    def ask(number):
        order = [*range(number, len(TEXTS)), *range(number)]
        found = embeddings.embed_documents([TEXTS[each] for each in order])
        np.testing.assert_allclose(found, [expected[each] for each in order], atol=1e-6)
        return number

    with ThreadPoolExecutor(len(TEXTS)) as threads:
        assert list(threads.map(ask, range(len(TEXTS)))) == list(range(len(TEXTS)))


async def test_in_an_event_loop_others_go_on_and_a_cancelled_task_ends(embeddings):
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    other = asyncio.ensure_future(tick())
    found = await asyncio.gather(embeddings.aembed_query("HELLO"), embeddings.aembed_documents(TEXTS * 8))
    assert found[0] == embeddings.embed_query("HELLO")
    assert ticks > 3
    other.cancel()


@pytest.mark.long
async def test_a_cancelled_task_ends_behind_the_batch_that_runs(embeddings, monkeypatch):
    batches, embed, began, go_on = [], Runner.embed, threading.Event(), threading.Event()

    def slow(self, batch, texts):
        batches.append(batch)
        began.set()
        go_on.wait(LONG)
        return embed(self, batch, texts)

    monkeypatch.setattr(Runner, "embed", slow)
    task = asyncio.ensure_future(embeddings.aembed_documents(["A B"] * 800))
    assert await asyncio.to_thread(began.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    await asyncio.to_thread(until, lambda: engine().status(embeddings.model).leases == 0)
    assert len(batches) == 1, "the one that ran; there are more than a hundred"


def test_the_time_can_be_up(folder):
    with pytest.raises(errors.DeadlineError):
        GemmaJaxEmbeddings(model=folder, timeout=0.0).embed_query("HELLO")


@pytest.mark.long
def test_matrices_in_eight_bits_say_nearly_the_same(folder, embeddings):
    found = GemmaJaxEmbeddings(model=folder, weights="int8").embed_documents(TEXTS)
    for one, other in zip(found, embeddings.embed_documents(TEXTS), strict=True):
        assert np.array(one) @ np.array(other) > 0.99


def test_numbers_that_are_not_finite_are_an_error(folder, embeddings):
    served = engine().load(folder)
    kept = served.model.params["final_norm"]
    try:
        served.model.params["final_norm"] = kept * np.float32("nan")
        with pytest.raises(errors.DeviceFailedError, match="not finite"):
            embeddings.embed_query("HELLO")
    finally:
        served.model.params["final_norm"] = kept


def test_documents_are_found_by_a_vector_store(embeddings):
    store = InMemoryVectorStore(embeddings)
    store.add_documents([Document(text) for text in ("ALPHA BETA", "GAMMA DELTA", "EPSILON")])
    assert len(store.similarity_search("ALPHA", k=2)) == 2


class TestUnit(EmbeddingsUnitTests):
    """LangChain's own tests of an embedding model that is made."""

    @property
    def embeddings_class(self):
        return GemmaJaxEmbeddings

    @property
    def embedding_model_params(self):
        return {"model": "google/embeddinggemma-300m"}

    @property
    def init_from_env_params(self):
        return {}, {"model": "google/embeddinggemma-300m"}, {}


class TestIntegration(EmbeddingsIntegrationTests):
    """LangChain's own tests of an embedding model that is asked."""

    place = ""

    @pytest.fixture(autouse=True)
    def _placed(self, folder):
        type(self).place = folder

    @property
    def embeddings_class(self):
        return GemmaJaxEmbeddings

    @property
    def embedding_model_params(self):
        return {"model": self.place}
