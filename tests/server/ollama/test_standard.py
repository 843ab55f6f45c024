"""LangChain's own suite for chat models, on ``ChatOllama`` before our server, as far as that class goes."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from langchain_ollama import ChatOllama
from langchain_tests.integration_tests import ChatModelIntegrationTests

from tests.own_engine import own_engine
from tests.serving import serving


@pytest.fixture(scope="module")
def at() -> Iterator[str]:
    """A server of the larger embedded model."""
    with own_engine(), serving(None, models=("sprout-m",), others=False) as server:
        yield server.listening.shown


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of that class
class TestChatOllama(ChatModelIntegrationTests):
    """Skipped is what the class, or a model that reads text alone, does not have: JSON without a schema too, since what
    a model of this size writes into an object of any form is chance."""

    @pytest.fixture(autouse=True)
    def before_our_server(self, at):
        type(self).at = at

    @property
    def chat_model_class(self):
        return ChatOllama

    @property
    def chat_model_params(self):
        unkept = {"limits": httpx.Limits(max_keepalive_connections=0)}
        return {"model": "sprout-m", "base_url": self.at, "client_kwargs": unkept, "temperature": 0}

    @property
    def model_override_value(self):
        return "sprout-m"

    @property
    def has_tool_choice(self):
        return False  # which Ollama's API has no field for
