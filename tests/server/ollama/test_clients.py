"""Ollama's own client for Python, and LangChain's models for Ollama, against our server."""

from __future__ import annotations

import httpx
import langchain_ollama
import ollama
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic import BaseModel

from langchain_gemma_jax import GemmaJaxEmbeddings
from tests.own_engine import own_engine
from tests.serving import serving
from tests.tiny_embedder import tiny_embedder

UNKEPT = {"limits": httpx.Limits(max_keepalive_connections=0)}  # connections that nobody has to close
HELLO = [{"role": "user", "content": "Hi"}]
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
TWO = "<|tool_call>call:ring{n:3}<tool_call|><|tool_call>call:ring{n:4}<tool_call|><|tool_response>"
THOUGHT = "<|channel>thought\nHm<channel|>Hello<turn|>"
OBJECT = '{"n":3}<turn|>'


class Ring(BaseModel):
    """A ring."""

    n: int


def ring(n: int) -> str:
    """Ring.

    Args:
        n: how often.
    """
    return "ding" * n


@pytest.fixture
def client(at):
    return ollama.Client(host=at, **UNKEPT)


def test_the_client_chats(client, says):
    engine = says("Hello<turn|>", "Hello<turn|>", CALL, "Done<turn|>", THOUGHT, OBJECT)
    whole = client.chat("sprout-s", HELLO, options={"temperature": 0, "num_ctx": 2048}, keep_alive="10m")
    assert (whole.message.content, whole.done, whole.done_reason) == ("Hello", True, "stop")
    assert whole.total_duration > 0
    assert "".join(each.message.content for each in client.chat("sprout-s", HELLO, stream=True)) == "Hello"
    said = client.chat("sprout-s", HELLO, tools=[ring]).message
    (call,) = said.tool_calls
    assert (call.function.name, call.function.arguments) == ("ring", {"n": 3})
    result = {"role": "tool", "tool_name": "ring", "content": ring(**call.function.arguments)}
    assert client.chat("sprout-s", [*HELLO, said, result], tools=[ring]).message.content == "Done"
    thought = client.chat("sprout-s", HELLO, think=True).message
    assert (thought.thinking.strip(), thought.content) == ("Hm", "Hello")
    found = client.chat("sprout-s", HELLO, format=Ring.model_json_schema())
    assert Ring.model_validate_json(found.message.content) == Ring(n=3)
    assert engine.submitted[0]["sampling"].temperature == 0


def test_the_client_generates_and_lists(client, says):
    says("Hello<turn|>", "Hello<turn|>", "Hello<turn|>")
    assert client.generate("sprout-s", "Hi", system="Be brief.").response == "Hello"
    assert "".join(each.response for each in client.generate("sprout-s", "Hi", stream=True)) == "Hello"
    assert client.generate("sprout-s", "Hi", raw=True, logprobs=False).response == "Hello"
    assert client.generate("sprout-s").done_reason == "load"
    assert "sprout-s" in [each.model for each in client.list().models]
    assert client.ps().models == []
    shown = client.show("sprout-s")
    assert ("tools" in shown.capabilities, shown.modelinfo["gemma3_text.context_length"]) == (True, 4096)
    assert client.pull("sprout-s").status == "success"
    assert [each.status for each in client.pull("sprout-s", stream=True)][-1] == "success"
    for wrong, status, said in (
        (lambda: client.chat("sprout-s", HELLO, options={"mirostat": 1}), 400, "options.mirostat"),
        (lambda: client.chat("sprout-s", [{"role": "user", "content": "x" * 9000}]), 400, "too many"),
        (lambda: list(client.chat("sprout-s", HELLO, options={"tfs_z": 0.5}, stream=True)), 400, "options.tfs_z"),
        (lambda: client.delete("sprout-s"), 404, "models rm"),
        (lambda: client.show("llama3"), 404, "llama3"),
    ):
        with pytest.raises(ollama.ResponseError, match=said) as caught:
            wrong()
        assert caught.value.status_code == status


async def test_the_client_of_event_loops(at, says):
    says("Hello<turn|>", "Hello<turn|>")
    client = ollama.AsyncClient(host=at, **UNKEPT)
    assert (await client.chat("sprout-s", HELLO)).message.content == "Hello"
    parts = [each.message.content async for each in await client.chat("sprout-s", HELLO, stream=True)]
    assert "".join(parts) == "Hello"


@pytest.mark.filterwarnings("ignore")  # of that package
async def test_langchains_chat_model(at, says):
    says(
        "Hello<turn|>", "Hello<turn|>", "Hello<turn|>", TWO, "Done<turn|>", OBJECT, THOUGHT,
        "<|tool_call>call:Ring{n:3}<tool_call|><|tool_response>",
    )  # fmt: skip
    settings = {"temperature": 0, "num_predict": 50, "keep_alive": -1, "num_thread": 4, "repeat_penalty": 1.1}
    named = {"model": "sprout-s", "base_url": at, "client_kwargs": UNKEPT}
    model = langchain_ollama.ChatOllama(**named, validate_model_on_init=True, **settings)
    answer = model.invoke("Hi")
    assert (answer.text, answer.usage_metadata["output_tokens"]) == ("Hello", 6)
    assert answer.response_metadata["done_reason"] == "stop"
    first, *rest = model.stream("Hi")
    for each in rest:
        first += each
    assert first.text == "Hello"
    assert (await model.ainvoke("Hi")).text == "Hello"
    with_tool = model.bind_tools([ring])
    said = with_tool.invoke("Hi")
    assert [(call["name"], call["args"]) for call in said.tool_calls] == [("ring", {"n": 3}), ("ring", {"n": 4})]
    results = [ToolMessage("ding", tool_call_id=call["id"]) for call in said.tool_calls]
    assert with_tool.invoke([HumanMessage("Hi"), said, *results]).text == "Done"
    assert model.with_structured_output(Ring).invoke("Hi") == Ring(n=3)
    thought = langchain_ollama.ChatOllama(**named, reasoning=True).invoke("Hi")
    assert (thought.additional_kwargs["reasoning_content"].strip(), thought.text) == ("Hm", "Hello")
    assert model.with_structured_output(Ring, method="function_calling").invoke("Hi") == Ring(n=3)


@pytest.mark.filterwarnings("ignore")
def test_langchains_text_model(at, says):
    says("Hello<turn|>", "Hello<turn|>")
    model = langchain_ollama.OllamaLLM(model="sprout-s", base_url=at, client_kwargs=UNKEPT, num_predict=20)
    assert model.invoke("Hi") == "Hello"
    assert "".join(model.stream("Hi")) == "Hello"


@pytest.mark.filterwarnings("ignore")
def test_langchains_embeddings(tmp_path):
    folder = str(tiny_embedder(tmp_path / "model"))
    texts = ["HELLO", "HELLO AGAIN"]
    with own_engine(), serving(None, models=(folder,), others=False) as server:
        at = server.listening.shown
        ours = GemmaJaxEmbeddings(model=folder, document_prompt="", query_prompt="")
        theirs = langchain_ollama.OllamaEmbeddings(model=folder, base_url=at, client_kwargs=UNKEPT)
        assert theirs.embed_documents(texts) == [pytest.approx(each) for each in ours.embed_documents(texts)]
        assert theirs.embed_query("HELLO") == pytest.approx(ours.embed_query("HELLO"))
        client = ollama.Client(host=at, **UNKEPT)
        assert client.embed(folder, texts, dimensions=4).embeddings[0] == pytest.approx(
            GemmaJaxEmbeddings(model=folder, document_prompt="", dimensions=4).embed_documents(texts)[0]
        )
        assert client.embeddings(folder, "HELLO").embedding == pytest.approx(ours.embed_query("HELLO"))
