"""LangChain's own tests of a chat model's surface, where its packages have them."""

from __future__ import annotations

from importlib import import_module

import pytest
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_gemma_jax import ChatGemmaJax


# The suite gives what hosted models take: api_key, max_retries. That they have no effect is said.
@pytest.mark.filterwarnings("ignore::langchain_gemma_jax.UnknownOptionWarning")
class TestSurface(ChatModelUnitTests):
    @property
    def chat_model_class(self):
        return ChatGemmaJax

    @property
    def chat_model_params(self):
        return {"model": "google/gemma-3-1b-it"}

    @property
    def init_from_env_params(self):
        return {"GEMMA_JAX_MODEL": "google/gemma-3-270m-it"}, {}, {"model": "google/gemma-3-270m-it"}

    @pytest.fixture(autouse=True)
    def _on_the_list(self, monkeypatch):
        # What load(allowed_objects="all") may make is a closed list of LangChain's own packages. ``test_serdes`` takes
        # a class to be on it, so here it is: ``load(allowed_objects=[ChatGemmaJax])`` is what users have.
        loading = import_module("langchain_core.load.load")
        listed = loading._get_default_allowed_class_paths("all")
        ours = tuple(ChatGemmaJax.lc_id())
        monkeypatch.setitem(loading._default_class_paths_cache, "all", listed | {ours})
