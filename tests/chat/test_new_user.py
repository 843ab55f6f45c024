"""The mistakes of a first try of the package, and the messages that they get."""

from __future__ import annotations

import json
import shutil
import sys
import types
import warnings

import pytest
from langchain_core.load import dumps, loads
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from langchain_gemma_jax import (
    BaseModelWarning,
    ChatGemmaJax,
    ContextLengthError,
    ForkedError,
    InputError,
    UnknownModelError,
    UnknownOptionWarning,
    engine,
)
from langchain_gemma_jax.ancestry import Ancestry
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.models.loading.open_model import ModelFiles
from tests.dialects.vocabulary import tokenizer


@pytest.mark.parametrize("name", ["model_name", "model_id", "repo_id", "model_path"])
def test_other_names_of_the_model(name, scripted):
    assert ChatGemmaJax(**{name: "google/gemma-3-1b-it"}).model == "google/gemma-3-1b-it"
    with pytest.raises(InputError, match=f"{name} is another name of model"):
        ChatGemmaJax(**{name: "x", "model": "y"})
    model, engine = scripted("Hello")
    assert model._get_ls_params(**{name: "other"})["ls_model_name"] == "other"
    model.invoke("Hi", **{name: "other"})
    assert engine.loaded[0] == "other"


@pytest.mark.parametrize("name", ["checkpoint_path", "llm_model", "hf_model_id", "pretrained_model_name_or_path"])
def test_what_would_name_a_model_is_never_ignored(name, scripted):
    model, engine = scripted()
    for call in (lambda: ChatGemmaJax(**{name: "google/gemma-3-1b-it"}), lambda: model.invoke("Hi", **{name: "x"})):
        with pytest.raises(InputError, match=rf"takes no {name}.*model='"):
            call()
    assert not engine.submitted
    with pytest.warns(UnknownOptionWarning, match="model_kwargs"):
        ChatGemmaJax(model_kwargs={})


def ring(times: int) -> str:
    """Rings."""
    return "ding" * times


def test_a_local_folder_has_a_profile(folder_of, tmp_path):
    folder = folder_of("gemma4")
    profile = ChatGemmaJax(model=str(folder)).profile
    assert profile["max_input_tokens"] == 2047
    assert ChatGemmaJax(model=folder, max_context=100).profile["max_input_tokens"] == 99
    (tmp_path / "config.json").write_text("{")
    assert "max_input_tokens" not in ChatGemmaJax(model=tmp_path).profile


def test_a_token_is_a_secret_and_reaches_the_hub(scripted, monkeypatch):
    model, engine = scripted("Hello", "Hello", token="hf_abc")
    model.invoke("Hi")
    assert engine.loaded[1]["token"] == "hf_abc"
    seen = [repr(model), str(model), dumps(model), json.dumps(model._identifying_params), str(model._get_ls_params())]
    assert "hf_abc" not in "".join([*seen, repr(model._options(None, {}))])
    monkeypatch.setenv("HF_TOKEN", "hf_env")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        back = loads(
            dumps(model),
            allowed_objects=[ChatGemmaJax],
            valid_namespaces=["langchain_gemma_jax"],
            secrets_from_env=True,
        )
    assert back.token == SecretStr("hf_env")
    ChatGemmaJax(model="scripted").invoke("Hi")
    assert "token" not in engine.loaded[1]
    with pytest.raises(ValueError, match="token"):
        ChatGemmaJax(token=3)


def test_the_engine_hands_a_token_to_what_loads(running, monkeypatch, folder_of):
    told = {}

    class Files(ModelFiles):
        def open(self, source, how, stop=None):
            told["token"] = how.token
            return super().open(source, how, stop)

    own = type(running)(Settings(drafts=False), Files())
    try:
        own.load(str(folder_of("gemma")), token="hf_abc")
    finally:
        assert own.close(30)
    assert told == {"token": "hf_abc"}


@pytest.mark.parametrize(("server", "advice"), [("gunicorn", "--preload"), ("uwsgi", "lazy-apps"), ("none", "spawn")])
def test_whoever_is_forked_is_told_what_to_do(server, advice, monkeypatch):
    for each in ("gunicorn", "uwsgi", "celery"):
        monkeypatch.delitem(sys.modules, each, raising=False)
    monkeypatch.setitem(sys.modules, server, types.ModuleType(server))
    ancestry = Ancestry()
    ancestry._inherited = True
    with pytest.raises(ForkedError, match=advice) as caught:
        ancestry.refuse_forked()
    assert ("spawn" in str(caught.value)) == (server == "none")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gemma-3-1b-it", "google/gemma-3-1b-it"),
        ("gemma-3-1b", "google/gemma-3-1b-it"),
        ("Gemma-3-1B-pt", "google/gemma-3-1b-pt"),
        ("gemma3:4b", "google/gemma-3-4b-it"),
        ("gemma4:e2b", "google/gemma-4-E2B-it"),
        ("gemma3:12b-it-q4_K_M", "google/gemma-3-12b-it"),
        ("https://huggingface.co/google/gemma-3-1b-it/tree/main", "google/gemma-3-1b-it"),
        ("sprout_m", "sprout-m"),
    ],
)
def test_a_name_that_means_nothing_is_answered_with_one_that_does(name, meant, running):
    with pytest.raises(UnknownModelError, match=f"Did you mean '{meant}'"):
        ChatGemmaJax(model=name).invoke("Hi")


@pytest.mark.parametrize("wrong", ["gemma3:4b", "./nowhere/at all", " "])
def test_the_environment_is_named_where_it_named_the_model(wrong, monkeypatch, running):
    monkeypatch.setenv("GEMMA_JAX_MODEL", wrong)
    with pytest.raises(InputError, match="GEMMA_JAX_MODEL"):
        ChatGemmaJax().invoke("Hi")
    with pytest.raises(InputError) as caught:
        ChatGemmaJax(model="gemma3:12b").invoke("Hi")
    assert "GEMMA_JAX_MODEL" not in str(caught.value)
    monkeypatch.setenv("GEMMA_JAX_MODEL", "auto")
    with pytest.raises(InputError, match="as GEMMA_JAX_MODEL says"):
        ChatGemmaJax()


def test_a_prompt_that_is_too_long_is_told_what_made_the_limit(scripted):
    model, engine = scripted(max_context=100)
    with pytest.raises(ContextLengthError, match=r"max_context=100, and up to 4096"):
        model.invoke("A" * 200)
    engine.served = engine.served.__class__(engine.model, 1, 150, frozenset())
    with pytest.raises(ContextLengthError, match=r"configure\(max_context=...\)"):
        ChatGemmaJax(model="scripted").invoke("A" * 200)
    engine.served = engine.served.__class__(engine.model, 1, 4096, frozenset())
    with pytest.raises(ContextLengthError, match="take a model with a longer context") as caught:
        ChatGemmaJax(model="scripted").invoke("A" * 5000)
    assert "configure" not in str(caught.value)
    assert "max_context=" not in str(caught.value)


def calls(*numbers: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "ring", "args": {"times": int(n)}, "id": n} for n in numbers])


def test_results_belong_to_the_calls_that_they_name(scripted):
    model, engine = scripted("Hello", "Hello")
    results = [ToolMessage(f"result {number}", tool_call_id=number) for number in ("2", "1")]
    model.invoke([HumanMessage("Ring"), calls("1", "2"), *results])
    model.invoke([HumanMessage("Ring"), calls("1", "2"), *reversed(results)])
    first, second = (tokenizer().decode(request["prompt"]) for request in engine.submitted)
    assert first == second
    with pytest.raises(InputError, match=r"messages\[2\] answers the call '2', and the calls before it are '1'"):
        model.invoke([HumanMessage("Ring"), calls("1"), results[0]])


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        {"type": "bash_20250124", "name": "bash"},
        {"type": "code_execution_20250522", "name": "code_execution"},
        {"type": "web_search_preview"},
    ],
)
def test_what_a_server_elsewhere_runs_is_no_function(tool, scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match=r"tools\[1\].*another company's server runs"):
        model.bind_tools([ring, tool])
    custom = {"type": "custom", "name": "x", "input_schema": {"type": "object", "properties": {}}}
    assert model.bind_tools([custom])


def test_names_of_tools_are_checked_when_they_are_bound(scripted):
    model, _ = scripted()
    with pytest.raises(InputError, match=r"tools\[1\].*called 'ring' too"):
        model.bind_tools([ring, {"name": "ring", "parameters": {}}])
    assert len(model.bind_tools([ring, ring]).kwargs["tools"]) == 1  # the same one twice
    for name in ("a\x00b", "a\nb", "a\u200bb", "x" * 257, "a{b", " a"):
        with pytest.raises(InputError, match="name"):
            model.bind_tools([ring, {"name": name, "parameters": {}}], tool_choice="ring")


def test_a_warm_up_for_more_than_there_is_is_refused(running, folder_of):
    served = engine().load(str(folder_of("gemma4")))
    with pytest.raises(InputError, match="up to 2048 tokens here; found 9999999"):
        engine().warmup(served, max_context=9999999)


def test_a_base_model_says_so_once(running, folder_of, tmp_path):
    folder = shutil.copytree(folder_of("gemma4"), tmp_path / "base")
    (folder / "chat_template.jinja").unlink()
    model = ChatGemmaJax(model=folder, max_tokens=2, temperature=0)
    with pytest.warns(BaseModelWarning, match="base model: there is no chat template.*GemmaJaxLLM") as caught:
        model.batch(["A", "A"])
    assert len(caught) == 1
    tuned = shutil.copytree(folder, tmp_path / "tuned")
    (tuned / "chat_template.jinja").write_text("{{ messages }}")
    ChatGemmaJax(model=tuned, max_tokens=2, temperature=0).invoke("A")
