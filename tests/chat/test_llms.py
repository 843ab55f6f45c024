"""``GemmaJaxLLM`` as LangChain sees it, and what it reads."""

from __future__ import annotations

import pytest
from langchain_core.load import dumpd, load
from langchain_core.runnables import RunnableLambda

from langchain_gemma_jax import ContextLengthError, DeadlineError, GemmaJaxLLM, InputError
from langchain_gemma_jax.chat.calling.raw_text import FILL_IN, text_ids
from tests.dialects.vocabulary import tokenizer


@pytest.fixture
def llm(chat_of) -> GemmaJaxLLM:
    return GemmaJaxLLM(model=chat_of().model, max_tokens=8, temperature=0)


async def test_every_way_writes_the_same(llm):
    told = llm.invoke("THE EARTH AND")
    assert told
    assert await llm.ainvoke("THE EARTH AND") == told
    assert "".join(llm.stream("THE EARTH AND")) == told
    assert "".join([text async for text in llm.astream("THE EARTH AND")]) == told
    assert llm.batch(["THE EARTH AND"] * 3) == [told] * 3
    assert await llm.abatch(["THE EARTH AND", "A"]) == [told, llm.invoke("A")]
    assert (RunnableLambda(lambda name: f"THE {name} AND") | llm).invoke("EARTH") == told
    heard = [event async for event in llm.astream_events("THE EARTH AND", version="v2")]
    assert "".join(each["data"]["chunk"] for each in heard if each["event"] == "on_llm_stream") == told


def test_what_it_cost_and_how_it_ended(llm):
    result = llm.generate(["THE EARTH", "A"])
    (first,), (second,) = result.generations
    assert first.generation_info["finish_reason"] == second.generation_info["finish_reason"] == "length"
    usage = result.llm_output["token_usage"]
    assert usage["completion_tokens"] == 16
    assert usage["total_tokens"] == usage["prompt_tokens"] + 16
    assert usage["prompt_tokens"] == 2 + llm.get_num_tokens("THE EARTH") + llm.get_num_tokens("A")
    told = llm._get_ls_params(model_name="y")
    assert (told["ls_provider"], told["ls_model_name"], told["ls_max_tokens"]) == ("gemma_jax", "y", 8)


def test_the_text_is_read_as_it_is_and_settings_hold(scripted):
    _, engine = scripted("one two<eos>", "one two")
    llm = GemmaJaxLLM(model="x", stop=["two"], scope="tenant", token="hf_abc")
    assert llm.invoke("<|turn>user") == "one "
    (request,) = engine.submitted
    assert request["prompt"] == (tokenizer().bos_id, *tokenizer().encode_text("<|turn>user"))
    assert (request["scope"], engine.loaded[1]["token"]) == ("tenant", "hf_abc")
    assert request["sampling"].grammar is None
    assert llm.invoke("A", max_tokens=3, stop=["zzz"]) == "one"
    with pytest.raises(ContextLengthError):
        GemmaJaxLLM(model="x", max_context=5).invoke("A" * 50)


def test_what_is_between_two_texts_is_written_by_models_that_learnt_it(scripted):
    class Coder:
        bos_id = 2

        def control_id(self, name):
            return 100 + FILL_IN.index(name)

        def encode_text(self, text):
            return [ord(mark) for mark in text]

    assert text_ids("a", "b", Coder(), "codegemma") == [2, 100, ord("a"), 101, ord("b"), 102]
    scripted()
    with pytest.raises(InputError, match="cannot fill in between two texts"):
        GemmaJaxLLM(model="x", suffix="b").invoke("a")


async def test_deadlines_hold(scripted):
    scripted()
    llm = GemmaJaxLLM(model="x", timeout=0.05)
    with pytest.raises(DeadlineError):
        llm.invoke("Hi")
    with pytest.raises(DeadlineError):
        await llm.ainvoke("Hi")
    with pytest.raises(InputError, match="top_p"):
        GemmaJaxLLM(top_p=2)


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_it_comes_back_from_langchains_serialisation():
    llm = GemmaJaxLLM(model="x", temperature=0.5, stop=["a"])
    assert load(dumpd(llm), allowed_objects=[GemmaJaxLLM], valid_namespaces=["langchain_gemma_jax"]) == llm
