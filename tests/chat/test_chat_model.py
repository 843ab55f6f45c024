"""``ChatGemmaJax`` as LangChain sees it."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.runnables import ConfigurableField

from langchain_gemma_jax import BusyError, ChatGemmaJax, ContextLengthError, DeadlineError, InputError

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
def test_it_comes_back_from_langchains_serialisation():
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


def test_tracing_knows_what_was_called():
    model = ChatGemmaJax(model="x", temperature=0.5, stop=["a"])
    assert model._get_ls_params() == {
        "ls_provider": "gemma_jax",
        "ls_model_type": "chat",
        "ls_model_name": "x",
        "ls_temperature": 0.5,
        "ls_stop": ["a"],
    }
    given = model._get_ls_params(stop=["b"], model="y", temperature=0.0, max_tokens=5)
    assert (given["ls_model_name"], given["ls_temperature"], given["ls_stop"]) == ("y", 0.0, ["b"])
    assert given["ls_max_tokens"] == 5


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


@pytest.mark.parametrize(
    ("model", "context", "reasons"),
    [
        ("google/gemma-3-1b-it", 32768, False),
        ("google/gemma-3-12b-it", 131072, False),
        ("google/gemma-2-2b-it", 8192, False),
        ("google/gemma-4-E2B-it", 131072, True),
        ("google/gemma-4-26b-a4b-it", 262144, True),
        ("./models/functiongemma-270m-it/", 32768, False),
    ],
)
def test_published_sizes_have_profiles(model, context, reasons):
    profile = ChatGemmaJax(model=model).profile
    assert profile["max_input_tokens"] == context - 1
    assert profile["reasoning_output"] is reasons
    assert profile["tool_calling"] is True
    assert ChatGemmaJax(model=model, max_context=100).profile["max_input_tokens"] == 99


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("google/gemma-3-4b-it", True),
        ("google/gemma-4-31b-it", True),
        ("google/gemma-3-1b-it", False),
        ("google/gemma-3-270m-it", False),
        ("functiongemma-270m-it", False),
        ("ollama:gemma3:4b", False),
        ("./gemma-3-4b-it-Q4_K_M.gguf", None),  # GGUF files that are not here: what they come with is not known
        ("google/gemma-3-4b-it-qat-q4_0-gguf:Q4_0", None),
        ("google/gemma-3-1b-it-GGUF:Q4_0", False),
        ("sprout-m", False),
    ],
)
def test_profiles_say_who_sees(model, sees, tmp_path):
    profile = ChatGemmaJax(model=model).profile
    kinds = ("image_inputs", "image_url_inputs", "image_tool_message", "pdf_inputs", "pdf_tool_message", "attachment")
    assert {profile.get(kind) for kind in kinds} == {sees}
    assert profile.get("audio_inputs") is (None if sees is None else False)
    assert profile["video_inputs"] is False
    for config, expected in (
        ({"model_type": "gemma3", "vision_config": {}}, (True, False)),
        ({"model_type": "gemma3"}, (False, False)),
        ({"model_type": "gemma3_text", "vision_config": {}}, (False, False)),
        ({"model_type": "gemma4", "vision_config": {}, "audio_config": {}}, (True, True)),
        ({"model_type": "gemma4_unified", "vision_config": {}, "audio_config": {}}, (True, True)),
        ({"model_type": "gemma4_unified", "vision_config": {}, "audio_config": None}, (True, False)),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        profile = ChatGemmaJax(model=str(tmp_path)).profile
        assert (profile["image_inputs"], profile["audio_inputs"]) == expected
    both = ChatGemmaJax(model="auto", route={"light": "google/gemma-3-1b-it", "heavy": "google/gemma-3-4b-it"})
    assert both.profile["image_inputs"] is False, "nobody knows which of them answers"


def test_others_have_what_is_known_of_them():
    assert "max_input_tokens" not in ChatGemmaJax(model="./mine").profile
    assert ChatGemmaJax(model="./mine", max_context=100).profile["max_input_tokens"] == 99


def test_place_and_time_reach_the_engine(scripted):
    model, engine = scripted("Hello", scope="tenant", timeout=60)
    model.invoke([SystemMessage("Be brief."), HumanMessage("Hi")])
    (request,) = engine.submitted
    assert request["scope"] == "tenant"
    assert 0 < request["system"] < len(request["prompt"])
    assert 50 < request["timeout"] <= 60


def test_the_time_that_is_spent_before_the_engine_counts(scripted, monkeypatch):
    model, engine = scripted("Hello", timeout=100)
    load = engine.load
    monkeypatch.setattr(engine, "load", lambda *args, **how: time.sleep(0.1) or load(*args, **how))
    model.invoke("Hi")
    assert 50 < engine.submitted[0]["timeout"] <= 99.9


def test_deadlines_hold(scripted):
    model, _ = scripted(timeout=0.05)
    with pytest.raises(DeadlineError):
        model.invoke("Hi")
    with pytest.raises(DeadlineError):
        list(model.stream("Hi"))


async def test_deadlines_hold_in_tasks_too(scripted):
    model, _ = scripted(timeout=0.05)
    with pytest.raises(DeadlineError):
        await model.ainvoke("Hi")
    with pytest.raises(DeadlineError):
        async for _chunk in model.astream("Hi"):
            pass


def test_a_context_is_never_cut_off(scripted):
    model, engine = scripted("Hello", "Hello", max_context=100)
    with pytest.raises(ContextLengthError) as caught:
        model.invoke("A" * 100)
    assert caught.value.limit == 99
    model.invoke("A" * 50)
    (request,) = engine.submitted
    assert request["sampling"].max_tokens == 100 - len(request["prompt"])
    model.invoke("A", max_tokens=3)
    assert engine.submitted[1]["sampling"].max_tokens == 3
    with pytest.raises(InputError, match="scripted can have up to 4096 tokens here; found 5000"):
        model.invoke("A", max_context=5000)


def test_counting_is_exact(scripted):
    model, engine = scripted("Hello", "Hello")
    tool = {"name": "ring", "description": "Rings", "input_schema": {"type": "object", "properties": {}}}
    messages = [SystemMessage("Be brief."), HumanMessage("Hi")]
    model.invoke(messages)
    model.bind_tools([tool]).invoke(messages)
    without, with_tool = (len(request["prompt"]) for request in engine.submitted)
    assert model.get_num_tokens_from_messages(messages) == without
    assert model.get_num_tokens_from_messages(messages, [tool]) == with_tool > without
    assert model.get_num_tokens("Hi") == 2
    assert model.get_num_tokens_from_messages([]) == 0


def test_a_piece_of_a_conversation_can_be_counted(scripted):
    # trim_messages counts whatever is left of a conversation when its beginning is cut off.
    model, _ = scripted()
    results = [ToolMessage("done", tool_call_id="c1", name="ring"), ToolMessage("done", tool_call_id="c2")]
    assert model.get_num_tokens_from_messages(results) > model.get_num_tokens_from_messages(results[1:]) > 0
    answer = AIMessage("", tool_calls=[{"name": "ring", "args": {}, "id": "c1"}])
    assert model.get_num_tokens_from_messages([answer, *results, HumanMessage("Hi")]) > 0


def test_somebody_elses_counting_is_used_if_they_say_so(scripted):
    model, _ = scripted(custom_get_token_ids=lambda text: [1, 2, 3])
    assert model.get_num_tokens("Hi") == 3
