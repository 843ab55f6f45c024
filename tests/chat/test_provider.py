"""LangChain and deepagents find the package by its name."""

from __future__ import annotations

import subprocess
import sys
import types
from textwrap import dedent

import pytest
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage

from langchain_gemma_jax import ChatGemmaJax, ProviderWarning, provider
from tests.chat.entry_points import ROOT


def test_a_model_is_made_by_its_name():
    model = init_chat_model("gemma_jax:google/gemma-3-4b-it", temperature=0.5)
    assert isinstance(model, ChatGemmaJax)
    assert (model.model, model.temperature) == ("google/gemma-3-4b-it", 0.5)
    assert init_chat_model("sprout-s", model_provider="gemma_jax").model == "sprout-s"
    assert init_chat_model("gemma_jax:./a:b").model == "./a:b"


def test_a_configurable_model_takes_another_one_and_tools(scripted):
    _, engine = scripted("Hello", "Hello", "Hello")
    flexible = init_chat_model("gemma_jax:sprout-m", configurable_fields=("model", "max_tokens"))
    flexible.bind_tools([], tool_choice="none").invoke("Hi")
    assert engine.loaded[0] == "sprout-m"
    flexible.invoke("Hi", config={"configurable": {"model": "gemma_jax:sprout-s", "max_tokens": 3}})
    assert engine.loaded[0] == "sprout-s"
    assert engine.submitted[1]["sampling"].max_tokens == 3
    assert init_chat_model().invoke("Hi", config={"configurable": {"model": "gemma_jax:x"}}).text == "Hello"


def test_an_agent_is_made_by_a_name(scripted):
    scripted("Hello")
    answer = create_agent("gemma_jax:sprout-m", []).invoke({"messages": [("user", "Hi")]})["messages"][-1]
    assert isinstance(answer, AIMessage)
    assert answer.text == "Hello"


@pytest.mark.long
@pytest.mark.parametrize(
    "order", ["langchain_gemma_jax, langchain.chat_models", "langchain.chat_models, langchain_gemma_jax"]
)
def test_whichever_is_imported_first(order):
    script = f"""
        import {order}
        from langchain.chat_models import init_chat_model
        print(type(init_chat_model("gemma_jax:x")).__name__, end="")
    """
    command = [sys.executable, "-W", "error", "-c", dedent(script)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("ChatGemmaJax", 0), done.stderr


def other_langchain(monkeypatch, **tables: object) -> types.ModuleType:
    module = types.ModuleType(provider.WHERE)
    vars(module).update(tables)
    monkeypatch.setitem(sys.modules, provider.WHERE, module)
    return module


def test_an_older_langchain_makes_our_models_too(monkeypatch):
    def helper(model, *, model_provider=None, **settings):
        return model, model_provider, settings

    module = other_langchain(monkeypatch, _SUPPORTED_PROVIDERS={"openai"}, _init_chat_model_helper=helper)
    provider.register()
    make = module._init_chat_model_helper
    assert make("gemma_jax:sprout-s", max_tokens=3) == ChatGemmaJax(model="sprout-s", max_tokens=3)
    assert make("sprout-s", model_provider="gemma-jax") == ChatGemmaJax(model="sprout-s")
    assert make("openai:x", temperature=1) == ("openai:x", None, {"temperature": 1})
    assert make("x", model_provider="openai") == ("x", "openai", {})


@pytest.mark.parametrize("tables", [{}, {"_BUILTIN_PROVIDERS": ["openai"]}, {"_BUILTIN_PROVIDERS": {"openai": "x"}}])
def test_where_the_table_has_moved_there_is_a_warning(tables, monkeypatch):
    other_langchain(monkeypatch, **tables)
    with pytest.warns(ProviderWarning, match="Pass a ChatGemmaJax") as caught:
        provider.register()
    assert len(caught) == 1


def test_the_middleware_for_deferred_tools_knows_the_package(monkeypatch):
    module = sys.modules.setdefault(provider.SEARCHING, types.ModuleType(provider.SEARCHING))
    for table in ({"openai": {"type": "tool_search"}}, {"gemma_jax": {"type": "theirs"}}):
        before = dict(table)
        monkeypatch.setattr(module, "_SERVER_TOOL_SEARCH_TOOLS", table, raising=False)
        provider.register()
        assert table == {"gemma_jax": {"type": "tool_search"}} | before
    monkeypatch.setattr(module, "_SERVER_TOOL_SEARCH_TOOLS", ["moved"])
    with pytest.warns(ProviderWarning, match="defer_loading"):
        provider.register()


def test_an_entry_of_the_users_own_stays(monkeypatch):
    table = {"gemma_jax": ("theirs", "Theirs", None)}
    other_langchain(monkeypatch, _BUILTIN_PROVIDERS=table)
    provider.register()
    assert table["gemma_jax"][0] == "theirs"
