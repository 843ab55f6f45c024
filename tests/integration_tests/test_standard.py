"""LangChain's own suite for chat models that answer, on the model that comes with the package: by what it can do."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import pytest
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.models.configuration.embedded import EMBEDDED, embedded_folder
from tests.own_engine import own_engine
from tests.serving import serving


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
class TestEmbedded(ChatModelIntegrationTests):
    """All of it. Skipped are what asks for eyes, ears or a recorded conversation with a server."""

    @property
    def chat_model_class(self):
        return ChatGemmaJax

    @property
    def chat_model_params(self):
        return {}

    @property
    def model_override_value(self):
        return str(embedded_folder(EMBEDDED[0]))

    @property
    def supports_anthropic_inputs(self):
        return True

    @property
    def supports_json_mode(self):
        return True

    @cached_property
    def supported_usage_metadata_details(self):
        return {"invoke": ["cache_read_input"], "stream": ["cache_read_input"]}

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        model, question = ChatGemmaJax(**self.chat_model_params), "What is between the earth and the moon?"
        model.invoke(question)
        if not stream:
            return model.invoke(question)
        first, *rest = model.stream(question)
        return first + rest


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
class TestStructuredByCalls(TestEmbedded):
    """The same with objects that are made by a call."""

    @property
    def structured_output_kwargs(self):
        return {"method": "function_calling"}


@pytest.fixture(scope="module")
def at() -> Iterator[str]:
    """A server of the larger embedded model, which lets its callers name the other one."""
    with own_engine(), serving(None, models=(EMBEDDED[-1],)) as server:
        yield server.listening.shown


class TestServed(TestEmbedded):
    """The same, answered by a server."""

    @pytest.fixture(autouse=True)
    def behind_a_server(self, at):
        type(self).at = at

    @property
    def chat_model_params(self):
        return {"server": self.at, "model": EMBEDDED[-1]}
