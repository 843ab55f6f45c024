"""Errors are LangChain's kinds of errors too, and what goes by them recovers."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import types
from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain_core import exceptions
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

import langchain_gemma_jax
from langchain_gemma_jax import (
    BusyError,
    ChatGemmaJax,
    ClosedError,
    ContextLengthError,
    DeadlineError,
    DeviceFailedError,
    DeviceMemoryError,
    ForkedError,
    GatedModelError,
    GemmaJaxError,
    HostLostError,
    InputError,
    MediaAccessError,
    MediaError,
    MediaLimitError,
    ModelNotOnHubError,
    OfflineError,
    SchemaError,
    UnknownModelError,
    UnreadableMediaError,
    errors,
    model_errors,
)

ROOT = Path(__file__).parents[2]
KINDS = {
    ContextLengthError: ("ContextOverflowError", False),
    DeadlineError: ("ModelTimeoutError", True),
    BusyError: ("ModelRateLimitError", True),
    DeviceFailedError: ("ModelAPIError", True),
    ClosedError: ("ModelAPIError", True),
    HostLostError: ("ModelAPIError", True),
    DeviceMemoryError: ("ModelAPIError", False),
    InputError: ("ModelInvalidRequestError", False),
    SchemaError: ("ModelInvalidRequestError", False),
    MediaError: ("ModelInvalidRequestError", False),
    UnreadableMediaError: ("ModelInvalidRequestError", False),
    MediaLimitError: ("ModelInvalidRequestError", False),
    MediaAccessError: ("ModelInvalidRequestError", False),
    UnknownModelError: ("ModelNotFoundError", False),
    ModelNotOnHubError: ("ModelNotFoundError", False),
    GatedModelError: ("ModelPermissionDeniedError", False),
    OfflineError: ("ModelConnectionError", True),
    ForkedError: ("ModelError", False),
}


@pytest.mark.parametrize("ours", KINDS, ids=lambda each: each.__name__)
def test_each_is_langchains_own_kind_and_says_whether_to_ask_again(ours):
    theirs, retryable = KINDS[ours]
    place = getattr(exceptions, theirs, None)
    assert place is None or issubclass(ours, place)
    assert issubclass(ours, GemmaJaxError)
    assert ours.is_retryable is retryable


def test_all_of_them_say_whether_to_ask_again_and_survive_copies():
    model_error = getattr(exceptions, "ModelError", Exception)
    for name in langchain_gemma_jax.__all__:
        error = getattr(langchain_gemma_jax, name)
        if name.endswith("Error") and error is not GemmaJaxError and name != "CutOffError":
            assert issubclass(error, model_error), name
            assert isinstance(error.is_retryable, bool)
    for error in (ContextLengthError(5, 3, "wait"), DeadlineError("The time was up."), SchemaError("#", "no")):
        for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert (type(twin), str(twin)) == (type(error), str(error))


def test_an_older_langchain_core_has_fewer():
    before = {each: each.__bases__ for each in KINDS}
    model_errors.join(types.ModuleType("exceptions"))
    assert {each: each.__bases__ for each in KINDS} == before


def test_a_door_that_is_asked_for_an_error_knows_langchains():
    script = """
        import sys
        from langchain_gemma_jax import ContextLengthError
        from langchain_core import exceptions
        theirs = getattr(exceptions, "ContextOverflowError", ValueError)  # a newer langchain-core has it
        assert issubclass(ContextLengthError, theirs) and "jax" not in sys.modules
    """.replace("        ", "")
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def failing(engine, *failures: Exception | None) -> None:
    """Have the engine refuse what is submitted, one failure a request."""
    left = list(failures)

    def fail() -> None:
        if left and (failure := left.pop(0)) is not None:
            raise failure

    engine.before = fail


def ask(model, *middleware: AgentMiddleware, messages=None) -> AIMessage:
    agent = create_agent(model, [], middleware=middleware)
    return agent.invoke({"messages": messages or [HumanMessage("Hi")]})["messages"][-1]


@pytest.mark.skipif(not hasattr(exceptions, "ModelError"), reason="this LangChain asks again for any error")
def test_retry_asks_again_where_that_may_help_and_nowhere_else(scripted):
    model, engine = scripted("Hello")
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False, on_failure="error")
    failing(engine, BusyError("full"), DeadlineError("late"), DeviceFailedError("broken"))
    assert ask(model, retry).text == "Hello"
    for failure in (InputError("no"), DeviceMemoryError("too large"), GatedModelError("license")):
        failing(engine, failure, failure)
        with pytest.raises(type(failure)):
            ask(model, retry)
    assert not engine.answers


async def test_fallback_takes_the_other_model(scripted):
    model, engine = scripted("Hello", "Hello")
    for failure in (ContextLengthError(5, 3), UnknownModelError("no")):
        failing(engine, failure)
        agent = create_agent(model, [], middleware=[ModelFallbackMiddleware(ChatGemmaJax(model="other"))])
        answer = (await agent.ainvoke({"messages": [HumanMessage("Hi")]}))["messages"][-1]
        assert (answer.text, answer.response_metadata["model_name"]) == ("Hello", "other")


@pytest.mark.skipif(not hasattr(exceptions, "ContextOverflowError"), reason="this LangChain recovers from none")
def test_summarization_begins_before_the_context_is_full_and_recovers_where_it_is(scripted):
    # The profile says how much fits: without that the middleware cannot be made.
    model, engine = scripted("SUMMARY", "Hello", max_context=600)
    middle = SummarizationMiddleware(
        model,
        trigger=("fraction", 0.5),
        keep=("messages", 1),
        trim_tokens_to_summarize=None,
        token_counter=model.get_num_tokens_from_messages,
        summary_prompt="Summarize: {messages}",
    )
    long = [each for n in range(8) for each in (HumanMessage(f"Question {n} " + "x" * 150), AIMessage(f"Answer {n}"))]
    answer = ask(model, middle, messages=[*long, HumanMessage("Hi")])
    assert answer.text == "Hello"
    # The whole history did not fit into the summary's prompt either: it was cut, and asked for again.
    assert len(engine.submitted) == 2
    assert len(engine.submitted[1]["prompt"]) < 600


def test_editing_the_context_makes_room(scripted):
    model, engine = scripted("Hello", max_context=500)
    edit = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=100, keep=1)], token_count_method="model")
    calls = [{"name": "ring", "args": {}, "id": str(n)} for n in range(4)]
    history = [HumanMessage("Ring")]
    for call in calls:
        history += [AIMessage("", tool_calls=[call]), ToolMessage("ding " * 30, tool_call_id=call["id"])]
    assert ask(model, edit, messages=history).text == "Hello"
    assert len(engine.submitted[0]["prompt"]) < 500


class City(BaseModel):
    """A city."""

    name: str


async def test_the_type_is_never_lost(scripted):
    model, engine = scripted()
    wrapped = {
        "structured": model.with_structured_output(City),
        "retry": model.with_retry(stop_after_attempt=2, wait_exponential_jitter=False),
        "fallbacks": model.with_fallbacks([model]),
        "agent": create_agent(model, []),
    }
    for failure in (DeadlineError("late"), ContextLengthError(5, 3), BusyError("full")):
        for name, runnable in wrapped.items():
            given = {"messages": [HumanMessage("Hi")]} if name == "agent" else "Hi"
            failing(engine, *[failure] * 4)
            with pytest.raises(type(failure)) as caught:
                runnable.invoke(given)
            assert str(caught.value) == str(failure)
            failing(engine, *[failure] * 4)
            with pytest.raises(type(failure)):
                [event async for event in runnable.astream_events(given, version="v2")]
    assert errors.BusyError is BusyError
