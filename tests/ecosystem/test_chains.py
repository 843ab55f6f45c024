"""LangChain's ways to put a model together with other things: chains, documents, histories, fallbacks, settings."""

from __future__ import annotations

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, get_usage_metadata_callback
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableField, RunnableParallel, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_gemma_jax import BusyError, ChatGemmaJax, DeadlineError
from tests.dialects.vocabulary import tokenizer

PROMPT = ChatPromptTemplate.from_messages([("system", "Be {mood}."), ("human", "{question}")])


async def test_runnables_compose(scripted):
    model, engine = scripted(*["Hello"] * 6)
    chain = PROMPT | model | StrOutputParser()
    given = {"mood": "kind", "question": "Hi"}
    assert chain.invoke(given) == await chain.ainvoke(given) == "".join(chain.stream(given)) == "Hello"
    both = RunnableParallel(said=chain, asked=RunnablePassthrough() | (lambda each: each["question"]))
    assert both.invoke(given) == {"said": "Hello", "asked": "Hi"}
    assert chain.batch([given, given]) == ["Hello"] * 2
    assert "Be kind." in tokenizer().decode(engine.submitted[0]["prompt"])


def test_documents_are_found_and_read(scripted):
    model, engine = scripted("A bell.")
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=32))
    store.add_documents([Document("The bell rings."), Document("The cat sleeps.")])

    def together(documents):
        return "\n".join(document.page_content for document in documents)

    prompt = ChatPromptTemplate.from_template("{context}\n\n{question}")
    found = store.as_retriever(search_kwargs={"k": 1}) | together
    chain = {"context": found, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    assert chain.invoke("The bell rings.") == "A bell."
    assert "The bell rings.\n\nThe bell rings." in tokenizer().decode(engine.submitted[0]["prompt"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*deprecated")  # LangChain deprecates its histories, and people have them
def test_a_history_is_kept(chat_of):
    from langchain_core.runnables.history import RunnableWithMessageHistory

    kept: dict[str, InMemoryChatMessageHistory] = {}
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
    chain = RunnableWithMessageHistory(
        prompt | chat_of(),
        lambda session: kept.setdefault(session, InMemoryChatMessageHistory()),
        input_messages_key="question",
        history_messages_key="history",
    )
    config = {"configurable": {"session_id": "1"}}
    first = chain.invoke({"question": "HELLO"}, config)
    second = chain.invoke({"question": "AND?"}, config)
    assert len(kept["1"].messages) == 4
    reused = second.usage_metadata["input_token_details"]["cache_read"]
    assert reused >= first.usage_metadata["input_tokens"]


def test_retries_and_fallbacks_go_by_kinds(scripted):
    model, engine = scripted("Hello", "Hello")
    failures: list[Exception] = [BusyError("full"), DeadlineError("late")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    engine.before = fail
    kinds = (BusyError, DeadlineError)
    again = model.with_retry(retry_if_exception_type=kinds, stop_after_attempt=3, wait_exponential_jitter=False)
    assert again.invoke("Hi").text == "Hello"
    failures.append(BusyError("full"))
    other = ChatGemmaJax(model="other")
    assert model.with_fallbacks([other], exceptions_to_handle=(BusyError,)).invoke("Hi").text == "Hello"


def test_settings_and_models_are_chosen_late(scripted):
    model, engine = scripted(*["Hello"] * 3)
    flexible = model.configurable_fields(max_tokens=ConfigurableField("most")).configurable_alternatives(
        ConfigurableField("size"), default_key="small", large=ChatGemmaJax(model="large")
    )
    flexible.invoke("Hi", config={"configurable": {"most": 3}})
    assert engine.submitted[0]["sampling"].max_tokens == 3
    assert flexible.with_config(configurable={"size": "large"}).invoke("Hi").response_metadata["model_name"] == "large"
    assert flexible.invoke("Hi").response_metadata["model_name"] == "scripted"


@pytest.mark.slow
async def test_batches_come_as_they_are_ready(chat_of):
    model = chat_of()
    given = ["A", "BE", "SEE"]
    alone = {number: model.invoke(each).text for number, each in enumerate(given)}
    assert {number: answer.text for number, answer in model.batch_as_completed(given)} == alone
    assert {number: answer.text async for number, answer in model.abatch_as_completed(given)} == alone


def test_a_cache_and_callbacks(scripted):
    class Heard(BaseCallbackHandler):
        def __init__(self):
            self.names = []

        def on_chat_model_start(self, *args, **kwargs):
            self.names.append("start")

        def on_llm_new_token(self, token, **kwargs):
            self.names.append(token)

        def on_llm_end(self, *args, **kwargs):
            self.names.append("end")

    heard = Heard()
    model, engine = scripted("one two", cache=InMemoryCache())
    with get_usage_metadata_callback() as counted:
        first = model.invoke("Hi", config={"callbacks": [heard]})
    assert model.invoke("Hi").content == first.content
    assert len(engine.submitted) == 1
    assert heard.names[0] == "start"
    assert heard.names[-1] == "end"
    assert counted.usage_metadata["scripted"]["output_tokens"] == first.usage_metadata["output_tokens"]
