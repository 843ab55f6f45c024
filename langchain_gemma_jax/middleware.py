"""Middleware for ``create_agent``: routing among several chat models, an end to repeated calls, reading ahead.

    from langchain_gemma_jax.middleware import KeepWarmMiddleware, RepeatedCallMiddleware, RouteMiddleware

    agent = create_agent(light, tools, middleware=[RouteMiddleware(light=light, heavy=heavy)])

LangChain's agents must be installed: pip install "langchain-gemma-jax[agents]". A single ``ChatGemmaJax(route=...)``
needs no middleware.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, ToolCallRequest
from langchain.agents.structured_output import AutoStrategy, OutputToolBinding, ProviderStrategy, ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables.config import ensure_config

from langchain_gemma_jax.chat.model_choice.conversation_signals import conversation_signals
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.routing import Choice, Policy, default_policy
from langchain_gemma_jax.routing.route import checked_choice


class RouteMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives each step of an agent to one of several chat models, smallest first.

        RouteMiddleware(light=ChatGemmaJax(model="./270m"), heavy=ChatGemmaJax(model="./4b"))

    The decision and its reason are in the answer's ``response_metadata["route"]``, where the next step reads the size
    that answered. It has no information about which sizes are in memory; a ``ChatGemmaJax(route=...)`` does.

    Raises:
        InputError: fewer than two models, or a value that is no chat model.
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
        return _with_decision(handler(request.override(model=self._models[choice.size])), choice, last)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        choice, last = self._choose(request)
        return _with_decision(await handler(request.override(model=self._models[choice.size])), choice, last)

    def _choose(self, request: ModelRequest[Any]) -> tuple[Choice, str | None]:
        answers = (each for each in reversed(request.messages) if isinstance(each, AIMessage))
        size = next((each.response_metadata.get("route", {}).get("size") for each in answers), None)
        last = size if size in self._models else None
        signals = conversation_signals(request.messages).signals(
            tuple(self._models),
            last,
            tools=0 if request.tool_choice == "none" else len(request.tools),
            forced=request.tool_choice not in {None, "auto", "none"},
            structured=request.response_format is not None,
        )
        return checked_choice(self._policy(signals), tuple(self._models)), last


def _with_decision(response: ModelResponse[Any], choice: Choice, last: str | None) -> ModelResponse[Any]:
    """Return the response, with the decision added to its answers."""
    found = {"size": choice.size, "reason": choice.reason, "last": last}
    for message in response.result:
        if isinstance(message, AIMessage):
            message.response_metadata = {**message.response_metadata, "route": found}
    return response


class RepeatedCallMiddleware(AgentMiddleware[Any, Any, Any]):
    """Ends loops of identical calls: a model that repeats a call that has a result must answer in text instead.

        create_agent(llm, tools, middleware=[RepeatedCallMiddleware()])

    A call is a repetition if a call of the same tool with the same arguments has got a result since the user's last
    message that is no error. If an answer also has new calls, only those are kept. ``allowed`` is the number of
    repetitions of a call that are still executed.

    Raises:
        InputError: ``allowed`` is no whole number from 0.
    """

    def __init__(self, *, allowed: int = 0) -> None:
        super().__init__()
        if type(allowed) is not int or allowed < 0:
            raise InputError(f"allowed: expected a whole number from 0, found {allowed!r}.")
        self._allowed = allowed

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        response = handler(request)
        return response if self._leaves_new(request, response) else handler(request.override(tool_choice="none"))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        response = await handler(request)
        return response if self._leaves_new(request, response) else await handler(request.override(tool_choice="none"))

    def _leaves_new(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> bool:
        """Remove repeated calls from an answer. Return False if no calls are left."""
        done = _answered_calls(request.messages)
        for message in response.result:
            if isinstance(message, AIMessage) and message.tool_calls:
                new = [call for call in message.tool_calls if done[_spelled(call)] <= self._allowed]
                if not new:
                    return False
                message.tool_calls = new
        return True


def _answered_calls(messages: Sequence[BaseMessage]) -> Counter[str]:
    """Return the number of times that each call was made and answered since the user's last message."""
    found: Counter[str] = Counter()
    made: dict[str | None, str] = {}
    for message in messages:
        if isinstance(message, HumanMessage):
            found.clear()
        elif isinstance(message, AIMessage):
            made |= {call["id"]: _spelled(call) for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.status != "error" and message.tool_call_id in made:
            found[made[message.tool_call_id]] += 1
    return found


def _spelled(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str)


MOST_STEPS = 256  # of agents that run at once, with results that are read ahead
_NEXT = HumanMessage("…")  # in the place of what the user types: all before it is known


@dataclass(eq=False)
class _Step:
    """A step whose tools run: what the next one will begin with, as far as it is known."""

    request: ModelRequest[Any]
    answer: AIMessage
    results: dict[str | None, ToolMessage] = field(default_factory=dict)

    @property
    def known(self) -> list[BaseMessage] | None:
        """The next prompt up to the first result that is missing; None if none is there yet, or none is missing."""
        found: list[BaseMessage] = []
        for call in self.answer.tool_calls:
            if call["id"] not in self.results:
                return [*self.request.messages, self.answer, *found] if found else None
            found.append(self.results[call["id"]])
        return None


class KeepWarmMiddleware(AgentMiddleware[Any, Any, Any]):
    """Reads the known part of the next prompt in advance, while the user types or other tools still run.

        create_agent(ChatGemmaJax(), tools, middleware=[KeepWarmMiddleware()])

    After an answer, that is the conversation so far; after a tool's result, all results so far. It is read while the
    engine is idle, and every other request goes first. A ``response_format`` is part of the prompt, and is read with
    it.

    Raises:
        InputError: the agent's model cannot read ahead. ``ChatGemmaJax`` can.
    """

    def __init__(self) -> None:
        super().__init__()
        self._steps: OrderedDict[str | None, _Step] = OrderedDict()  # by the ids of their calls
        self._ahead: OrderedDict[str, Any] = OrderedDict()  # by thread of the graph
        self._lock = threading.Lock()  # tools run in threads of their own

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        self._stop()
        response = handler(request)
        self._answered(request, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """See ``AgentMiddleware``."""
        self._stop()
        response = await handler(request)
        self._answered(request, response)
        return response

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """See ``AgentMiddleware``."""
        result = handler(request)
        self._resulted(request, result)
        return result

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """See ``AgentMiddleware``."""
        result = await handler(request)
        self._resulted(request, result)
        return result

    def _answered(self, request: ModelRequest[Any], response: ModelResponse[Any]) -> None:
        """Begin with what follows an answer: its tools' results, or the user's next words."""
        if not response.result or not isinstance(answer := response.result[0], AIMessage):
            return
        results = response.result[1:]
        there: dict[str | None, ToolMessage] = {
            each.tool_call_id: each for each in results if isinstance(each, ToolMessage)
        }  # of the agent's own
        if set(there) == {call["id"] for call in answer.tool_calls}:
            if not there or response.structured_response is not None:  # else the agent asks for a better object at once
                self._read(request, [*request.messages, *response.result, _NEXT])
        elif len(answer.tool_calls) > 1:  # behind a single call the next step begins at once
            step = _Step(request, answer, there)
            with self._lock:
                self._steps |= {call["id"]: step for call in answer.tool_calls}
                while len(self._steps) > MOST_STEPS:
                    self._steps.popitem(last=False)

    def _resulted(self, request: ToolCallRequest, result: Any) -> None:
        with self._lock:
            step = self._steps.pop(request.tool_call["id"], None)
            if step is None or not isinstance(result, ToolMessage):
                return
            step.results[result.tool_call_id] = result
            known = step.known
        if known is not None:
            self._read(step.request, known)

    def _read(self, request: ModelRequest[Any], messages: list[BaseMessage]) -> None:
        prepare = getattr(request.model, "prepare", None)
        if prepare is None:
            raise InputError(
                "KeepWarmMiddleware: expected a model that reads ahead, such as ChatGemmaJax; found "
                f"{type(request.model).__name__}, which has no prepare()."
            )
        system = [] if request.system_message is None else [request.system_message]
        ahead = prepare([*system, *messages], **_bound(request))
        self._stop()
        if (thread := _thread()) is not None:
            with self._lock:
                self._ahead[thread] = ahead
                while len(self._ahead) > MOST_STEPS:
                    self._ahead.popitem(last=False)

    def _stop(self) -> None:
        """Stop what is still being read ahead in this thread of the graph: now it is known what comes next."""
        if (thread := _thread()) is not None:
            with self._lock:
                ahead = self._ahead.pop(thread, None)
            if ahead is not None:
                ahead.cancel()


def _bound(request: ModelRequest[Any]) -> dict[str, Any]:
    """Return what the agent binds to its model for a request, as far as the prompt shows it."""
    form, tools = request.response_format, list(request.tools)
    if isinstance(form, AutoStrategy):
        native = (getattr(request.model, "profile", None) or {}).get("structured_output")
        form = ProviderStrategy(form.schema) if native else ToolStrategy(form.schema)
    if isinstance(form, ToolStrategy):
        tools += [OutputToolBinding.from_schema_spec(each).tool for each in form.schema_specs]
    asked = form.to_model_kwargs() if isinstance(form, ProviderStrategy) else {}
    return {**asked, **request.model_settings, "tools": tools or None}


def _thread() -> str | None:
    """Return the thread of the graph that calls; None if it keeps no conversation."""
    thread = ensure_config().get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)
