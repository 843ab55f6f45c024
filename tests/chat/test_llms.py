"""``GemmaJaxLLM`` as LangChain sees it, and what it reads."""

from __future__ import annotations

import pytest
from langchain_core.load import dumpd, load
from langchain_core.runnables import RunnableLambda

from langchain_gemma_jax import ContextLengthError, DeadlineError, GemmaJaxLLM, InputError, ServerUnreachableError


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


async def test_errors_are_the_same_wherever_it_runs(llm):
    for wrong, error, said in (
        (lambda: llm.invoke("A", suffix="B"), InputError, "cannot fill in between two texts"),
        (lambda: list(llm.stream("A", suffix="B")), InputError, "cannot fill in between two texts"),
        (lambda: llm.generate(["A", "A" * 20_000]), ContextLengthError, "too many"),
        (lambda: llm.invoke("A", timeout=0), DeadlineError, "deadline|time"),
    ):
        with pytest.raises(error, match=said):
            wrong()
    with pytest.raises(InputError, match="cannot fill in"):
        await llm.ainvoke("A", suffix="B")


def test_a_server_that_is_not_there_is_named(tmp_path):
    llm = GemmaJaxLLM(server=f"unix:{tmp_path}/none.sock")
    with pytest.raises(ServerUnreachableError, match="gemma-jax serve"):
        llm.invoke("Hi")
    with pytest.raises(InputError, match="server"):
        GemmaJaxLLM(server="nowhere")


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
def test_it_comes_back_from_langchains_serialization():
    llm = GemmaJaxLLM(model="x", temperature=0.5, stop=["a"])
    assert load(dumpd(llm), allowed_objects=[GemmaJaxLLM], valid_namespaces=["langchain_gemma_jax"]) == llm
