"""The names under which LangChain's packages have their parts."""

from __future__ import annotations

from importlib import import_module

import pytest

import langchain_gemma_jax


@pytest.mark.parametrize(("module", "name"), [("chat_models", "ChatGemmaJax"), ("llms", "GemmaJaxLLM")])
def test_partner_packages_names(module, name):
    found = import_module(f"langchain_gemma_jax.{module}")
    assert getattr(found, name) is getattr(langchain_gemma_jax, name)
    assert all(field.description for field in own_fields(getattr(found, name)))


def test_a_decision_model_says_what_it_needs_where_there_are_none():
    try:
        from langchain_core.decisions import BaseDecisionModel
    except ImportError:
        with pytest.raises(ImportError, match="came with langchain-core"):
            import_module("langchain_gemma_jax.decisions")
    else:
        made = import_module("langchain_gemma_jax.decisions").GemmaDecisionModel
        assert issubclass(made, BaseDecisionModel)
        assert all(field.description for field in own_fields(made))


def own_fields(model):
    """The fields that a class declares itself."""
    return [model.model_fields[name] for name in model.__annotations__ if name in model.model_fields]
