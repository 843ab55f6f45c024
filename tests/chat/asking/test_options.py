"""The options of one call: checked, completed by the checkpoint, and never ignored in silence."""

from __future__ import annotations

import asyncio
import linecache
import re
import warnings

import numpy as np
import pytest
from langchain_core.runnables import RunnableLambda

from langchain_gemma_jax import (
    ChatGemmaJax,
    ConfigError,
    GemmaJaxEmbeddings,
    InputError,
    UnknownOptionWarning,
)
from langchain_gemma_jax.engine.base.sampling_options import Sampling

WRONG = {
    "model": ["", 3],
    "temperature": [-1, 101, "hot", True, float("nan")],
    "top_k": [-1, 1.5],
    "top_p": [0, 1.5],
    "min_p": [1, -0.1],
    "repetition_penalty": [0],
    "presence_penalty": [101],
    "frequency_penalty": [-101],
    "logit_bias": [{"a": 1}, {1: 101}, [1]],
    "seed": [2**64, "x"],
    "stop": [[""], 3, ["x"] * 65],
    "max_tokens": [0, 1.5],
    "logprobs": ["yes"],
    "thinking": ["high", 1],
    "parallel_tool_calls": [0],
    "timeout": [-1, "soon", float("inf")],
    "max_context": [1, 10.0],
    "n_ctx": [1],
    "scope": [1],
    "dialect": ["chatml"],
    "dtype": ["int4"],
    "revision": [1],
    "weights": ["int3", 8],
    "activations": ["int4", 8],
    "devices": ["all", 0, -1, True, 2.0],
    "replicas": ["all", 0, -1, True, 2.0],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_what_is_not_possible_is_refused_with_what_is(name, value, scripted):
    said = "max_context" if name == "n_ctx" else name
    with pytest.raises(InputError, match=rf"{said}.*: expected "):
        ChatGemmaJax(**{"model": "x", name: value})
    model, _ = scripted("Hello")
    with pytest.raises(InputError, match=rf"{said}.*: expected "):
        model.invoke("Hello", **{name: value})


def test_without_a_model_it_is_the_embedded_one_or_that_of_the_environment(monkeypatch):
    assert ChatGemmaJax().model == ChatGemmaJax(model=None).model == "sprout-m"
    monkeypatch.setenv("GEMMA_JAX_MODEL", "google/gemma-3-270m-it")
    assert ChatGemmaJax().model == "google/gemma-3-270m-it"


def test_two_names_of_one_setting():
    assert ChatGemmaJax(model="x", n_ctx=100).max_context == 100
    assert ChatGemmaJax(model="x", n_ctx=None, max_context=100).max_context == 100
    with pytest.raises(InputError, match="n_ctx is another name of max_context"):
        ChatGemmaJax(model="x", n_ctx=100, max_context=100)


def test_values_are_plain(tmp_path):
    model = ChatGemmaJax(model=tmp_path, temperature=np.float32(0.5), top_k=np.int64(3), stop="x", logit_bias={1: 2})
    assert model.model == str(tmp_path)
    assert (model.stop, model.logit_bias) == (["x"], {1: 2.0})
    assert [type(each) for each in (model.temperature, model.top_k)] == [float, int]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("num_predict", "max_tokens"),
        ("temprature", "temperature"),
        ("num_ctx", "max_context"),
        ("zebra", None),
        ("quantization", "weights"),
        ("do_sample", "temperature"),
        ("n_gpu_layers", r"JAX_PLATFORMS, which says where JAX runs \(it takes an accelerator by itself\)\?$"),
        ("n", "batch, with the same input several times"),
    ],
)
def test_what_means_nothing_is_said(name, hint, scripted):
    match = f"takes no {name}: it has no effect." + (f" Did you mean {hint}" if hint else "$")
    with pytest.warns(UnknownOptionWarning, match=match):
        ChatGemmaJax(**{"model": "x", name: 1})
    model, _ = scripted("Hello")
    with pytest.warns(UnknownOptionWarning, match=match):
        model.invoke("Hello", **{name: 1})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("base_url", "http://127.0.0.1:11434", 'server="http://127.0.0.1:8000"'),
        ("openai_api_base", "http://127.0.0.1:8000/v1", 'server="http://127.0.0.1:8000"'),
        ("device", "cuda", "JAX_PLATFORMS, which says where JAX runs"),
        ("load_in_8bit", True, 'weights="int8"'),
        ("load_in_4bit", True, 'weights="int4"'),
        ("reasoning_effort", "high", "thinking=True"),
        ("format", "json", "response_format, with a call, or with_structured_output"),
    ],
)
def test_what_decides_about_answers_elsewhere_is_never_ignored(name, value, says, scripted):
    model, engine = scripted()
    for whose, call in (
        ("ChatGemmaJax", lambda: ChatGemmaJax(model="x", **{name: value})),
        ("GemmaJaxEmbeddings", lambda: GemmaJaxEmbeddings(model="x", **{name: value})),
        ("This call", lambda: model.invoke("Hello", **{name: value})),
    ):
        with pytest.raises(InputError, match=re.escape(f"{whose} takes no {name}. Say ") + f".*{re.escape(says)}"):
            call()
    assert not engine.submitted
    for nothing in (None, False):  # as many programs pass on what they were given
        with pytest.warns(UnknownOptionWarning, match=f"takes no {name}"):
            ChatGemmaJax(model="x", **{name: nothing})


def test_warnings_show_the_line_of_whoever_called(scripted):
    async def asynchronous():
        await model.ainvoke("Hello", n=2)  # here

    model, _ = scripted("Hello", "Hello", "Hello", "Hello", "Hello")
    chain = RunnableLambda(lambda text: text) | model
    for call in (
        lambda: ChatGemmaJax(model="x", n=2),  # here
        lambda: model.invoke("Hello", n=2),  # here
        lambda: list(model.stream("Hello", n=2)),  # here
        lambda: (RunnableLambda(lambda text: text) | model.bind(n=2)).invoke("Hello"),  # here
        lambda: asyncio.run(asynchronous()),  # here
    ):
        with pytest.warns(UnknownOptionWarning, match="takes no n: .*Did you mean batch") as caught:
            call()
        assert {each.filename for each in caught} == {__file__}
        assert all("  # here" in linecache.getline(__file__, each.lineno) for each in caught)
    assert chain.invoke("Hello").text == "Hello"


def test_a_server_is_no_setting_of_what_runs_in_this_process_alone(monkeypatch):
    for kind in (GemmaJaxEmbeddings,):
        whose = rf"{kind.__name__} runs in this process. ChatGemmaJax and GemmaJaxLLM ask a server"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(InputError, match=rf"^server='auto': {whose}; leave it out here"):
                kind(model="x", server="auto")
            assert kind(model="x", server="off").model == kind(model="x", server=None).model == "x"
        monkeypatch.setenv("GEMMA_JAX_SERVER", "auto")
        with pytest.warns(UnknownOptionWarning, match=rf"^GEMMA_JAX_SERVER=auto has no effect here: {whose}.$"):
            assert kind(model="x").model == "x"
        monkeypatch.setenv("GEMMA_JAX_SERVER", "off")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind(model="x")
        monkeypatch.delenv("GEMMA_JAX_SERVER")


def test_langchains_own_arguments_are_no_surprise(scripted):
    model, _ = scripted("Hello", "Hello", streaming=True, tags=["a"], metadata={"b": 1}, verbose=False, cache=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.invoke("Hello", stream=False)
        model.invoke("Hello", ls_structured_output_format={"schema": {"title": "A", "properties": {}}})


def sampled(scripted, defaults, settings=None, **given) -> Sampling:
    model, engine = scripted("Hello", **(settings or {}))
    engine.generation_defaults.update(defaults)
    model.invoke("Hello", **given)
    return engine.submitted[0]["sampling"]


GEMMA3 = {"do_sample": True, "top_k": 64, "top_p": 0.95, "eos_token_id": [1, 106]}


def test_sampling_is_as_the_authors_recommend(scripted):
    found = sampled(scripted, GEMMA3)
    assert (found.temperature, found.top_k, found.top_p) == (1.0, 64, 0.95)


@pytest.mark.parametrize("defaults", [{}, {"top_k": 64}, {"do_sample": False, "temperature": 1.0}])
def test_without_a_recommendation_the_most_likely_token_is_taken(defaults, scripted):
    assert sampled(scripted, defaults).temperature == 0


@pytest.mark.parametrize("defaults", [{}, GEMMA3])
def test_an_answer_is_as_long_at_most_as_the_authors_say_or_as_the_caller_does(defaults, scripted):
    limited = defaults | {"max_new_tokens": 7}
    assert sampled(scripted, defaults).max_tokens > 900  # as much as there is room for
    assert sampled(scripted, limited).max_tokens == 7
    assert sampled(scripted, limited, max_tokens=900).max_tokens == 900
    assert sampled(scripted, limited, {"max_tokens": 8}).max_tokens == 8


def test_a_limit_that_is_not_possible_names_its_file(scripted):
    with pytest.raises(ConfigError, match=r"scripted, generation_config.json: max_tokens: expected"):
        sampled(scripted, {"max_new_tokens": 0})


def test_what_is_set_wins_and_what_is_given_with_the_call_wins_over_that(scripted):
    found = sampled(scripted, GEMMA3, {"top_k": 5, "seed": 1, "stop": ["a"]}, seed=2, stop=["b"], temperature=0.5)
    assert (found.temperature, found.top_k, found.top_p, found.seed, found.stop) == (0.5, 5, 0.95, 2, ("b",))


def test_no_stops_is_something_that_can_be_given(scripted):
    assert sampled(scripted, {}, {"stop": ["a"]}, stop=[]).stop == ()


def test_a_recommendation_that_is_not_possible_names_its_file(scripted):
    with pytest.raises(ConfigError, match=r"scripted, generation_config.json: top_p: expected"):
        sampled(scripted, GEMMA3 | {"top_p": 3})


def test_the_model_can_be_given_with_the_call(scripted):
    model, engine = scripted("Hello", dtype="float32", revision="main", weights="int8", activations="float32")
    answer = model.invoke("Hello", model="another", dtype="bfloat16")
    how = {"dtype": "bfloat16", "revision": "main", "weights": "int8", "activations": "float32"}
    assert engine.loaded == ("another", how)
    assert answer.response_metadata["model_name"] == "another"


def test_a_setting_that_was_changed_later_is_checked_when_it_is_used(scripted):
    model, _ = scripted("Hello")
    model.temperature = 1000
    with pytest.raises(InputError, match="temperature: expected a number from 0 to 100"):
        model.invoke("Hello")
