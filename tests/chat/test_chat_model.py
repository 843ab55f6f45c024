"""``ChatGemmaJax`` as LangChain sees it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumpd, load
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import ConfigurableField

from langchain_gemma_jax import BusyError, ChatGemmaJax

ROOT = Path(__file__).parents[2]
SETTINGS = {"model": "x", "temperature": 0.5, "stop": ["a"], "logit_bias": {1: 2.0}, "scope": "s", "thinking": True}


@pytest.mark.long
def test_making_one_needs_no_jax_and_no_time():
    script = """
        import sys
        from langchain_gemma_jax import ChatGemmaJax
        ChatGemmaJax(model="google/gemma-3-1b-it")
        for _ in range(20):
            ChatGemmaJax(model="google/gemma-3-1b-it", temperature=0.5, stop=["a"]).bind_tools([])
        assert not {"jax", "numpy", "tokenizers", "huggingface_hub"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", dedent(script)], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    "way", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), lambda it: it.model_copy()]
)
def test_copies_are_equal(way):
    model = ChatGemmaJax(**SETTINGS)
    assert way(model) == model
    assert way(model)._identifying_params == model._identifying_params


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_it_comes_back_from_langchains_serialization():
    model = ChatGemmaJax(**SETTINGS)
    stored = dumpd(model)
    assert {name: stored["kwargs"][name] for name in SETTINGS} == SETTINGS
    back = load(stored, allowed_objects=[ChatGemmaJax], valid_namespaces=["langchain_gemma_jax"])
    assert back == model


def test_settings_can_be_configured(scripted):
    model, engine = scripted("Hello", "Hello")
    flexible = model.configurable_fields(max_tokens=ConfigurableField(id="max_tokens"))
    flexible.invoke("Hi", config={"configurable": {"max_tokens": 3}})
    assert engine.submitted[0]["sampling"].max_tokens == 3


def test_langchains_cache_spares_the_engine(scripted):
    model, engine = scripted("Hello", "again", cache=InMemoryCache())
    assert model.invoke("Hi").content == model.invoke("Hi").content
    assert len(engine.submitted) == 1
    model.invoke("Hi", temperature=0.5)
    assert len(engine.submitted) == 2


def test_langchains_rate_limiter_is_asked(scripted):
    asked = []

    class Limiter(InMemoryRateLimiter):
        def acquire(self, *, blocking=True):
            asked.append(blocking)
            return True

    limiter = Limiter()
    model, _ = scripted("Hello", "Hello", "Hello", rate_limiter=limiter)
    for _ in range(3):
        model.invoke("Hi")
    assert asked == [True] * 3


def test_retries_and_fallbacks(scripted):
    model, engine = scripted("Hello", "Hello")
    failures = [BusyError("full"), BusyError("full")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    engine.before = fail
    assert model.with_retry(retry_if_exception_type=(BusyError,), wait_exponential_jitter=False).invoke("Hi").content
    failures.append(BusyError("full"))
    assert model.with_fallbacks([model]).invoke("Hi").content == "Hello"


async def test_callbacks_hear_every_token_once(scripted):
    model, _ = scripted("Hello", "Hello", "Hello")
    events = [event async for event in model.astream_events("Hi", version="v2")]
    heard = [event["data"]["chunk"].content for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(heard) == "Hello"
    assert len([each for each in heard if each]) == 5
    streaming = model.model_copy(update={"streaming": True})
    assert (await streaming.ainvoke("Hi")).content == streaming.invoke("Hi").content == "Hello"


def test_somebody_elses_counting_is_used_if_they_say_so(scripted):
    model, _ = scripted(custom_get_token_ids=lambda text: [1, 2, 3])
    assert model.get_num_tokens("Hi") == 3
