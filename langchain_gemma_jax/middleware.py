"""Routing for agents whose sizes are chat models of their own: a middleware for ``create_agent``.

    from langchain_gemma_jax.middleware import RouteMiddleware

    agent = create_agent(light, tools, middleware=[RouteMiddleware(light=light, heavy=heavy)])

It wants LangChain's agents: pip install "langchain-gemma-jax[agents]". A single ``ChatGemmaJax(route=...)`` needs none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage

from langchain_gemma_jax.chat.model_choice.conversation_signals import conversation_signals
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing import Choice, Policy, default_policy
from langchain_gemma_jax.routing.route import checked_choice


class RouteMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives each step of an agent to one of several chat models, smallest first.

        RouteMiddleware(light=ChatGemmaJax(model="./270m"), heavy=ChatGemmaJax(model="./4b"))

    The decision and its reason are in the answer's ``response_metadata["route"]``, from which the next step knows who
    answered. Whether a size is in memory is not known here: sizes of one ``ChatGemmaJax(route=...)`` are better off.

    Raises:
        InputError: fewer than two models, or something that is none.
    """

    def __init__(self, *, policy: Policy = default_policy, **models: BaseChatModel) -> None:
        super().__init__()
        for name, model in models.items():
            if not isinstance(model, BaseChatModel):
                raise InputError(f"RouteMiddleware: expected a chat model for {name!r}; found {model!r:.100}.")
        if len(models) < 2:
            raise InputError(f"RouteMiddleware: expected two or more models by name; found {', '.join(models)}.")
        self._models = models
        self._policy = policy

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        choice, last = self._choose(request)
        return _told(handler(request.override(model=self._models[choice.size])), choice, last)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        choice, last = self._choose(request)
        return _told(await handler(request.override(model=self._models[choice.size])), choice, last)

    def _choose(self, request: ModelRequest[Any]) -> tuple[Choice, str | None]:
        answers = (each for each in reversed(request.messages) if isinstance(each, AIMessage))
        said = next((each.response_metadata.get("route", {}).get("size") for each in answers), None)
        last = said if said in self._models else None
        signals = conversation_signals(request.messages).signals(
            tuple(self._models),
            last,
            tools=0 if request.tool_choice == "none" else len(request.tools),
            forced=request.tool_choice not in {None, "auto", "none"},
            structured=request.response_format is not None,
        )
        return checked_choice(self._policy(signals), tuple(self._models)), last


def _told(response: ModelResponse[Any], choice: Choice, last: str | None) -> ModelResponse[Any]:
    """The response, with the decision in its answers."""
    found = {"size": choice.size, "reason": choice.reason, "last": last}
    for message in response.result:
        if isinstance(message, AIMessage):
            message.response_metadata = {**message.response_metadata, "route": found}
    return response
