"""Every middleware that LangChain ships, in an agent whose model says what it is told to."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest
from langchain.agents import create_agent, middleware
from langchain.agents.middleware import HostExecutionPolicy
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_gemma_jax import BusyError, ContextLengthError, DeadlineError
from tests.dialects.vocabulary import tokenizer

RING = "<|tool_call>call:ring{times:2}<tool_call|><|tool_response>"
CONFIG = {"configurable": {"thread_id": "1"}}
rung: list[int] = []


def ring(times: int) -> str:
    """Rings the bell."""
    rung.append(times)
    if times > 5:
        raise ValueError("that is too often")
    return "ding " * times


def call(name: str, arguments: str) -> str:
    return f"<|tool_call>call:{name}{{{arguments}}}<tool_call|><|tool_response>"


def quoted(text: str) -> str:
    return f'<|"|>{text}<|"|>'


def made(name: str, **settings: object) -> object:
    """A middleware of LangChain's, if the installed one has it."""
    cls = getattr(middleware, name, None)
    if cls is None:
        pytest.skip(f"this LangChain has no {name}")
    return cls(**settings)


@pytest.fixture
def agent(scripted):
    """``agent(answers, middleware)``: what an agent with a bell says, its engine, and the agent."""
    rung.clear()

    def agent(answers, *used, messages=None, tools=(ring,), **settings):
        model, engine = scripted(*answers, room=32768, **settings)
        made = create_agent(model, list(tools), middleware=used, checkpointer=InMemorySaver())
        return made.invoke({"messages": messages or [HumanMessage("Ring")]}, CONFIG)["messages"], engine, made

    return agent


def failing(engine, *failures: Exception) -> None:
    left = list(failures)

    def fail() -> None:
        if left:
            raise left.pop(0)

    engine.before = fail


def test_model_retry_and_fallback(scripted):
    model, engine = scripted("Hello", "Hello")
    retry = made("ModelRetryMiddleware", max_retries=2, initial_delay=0, jitter=False, on_failure="error")
    failing(engine, BusyError("full"), DeadlineError("late"))
    assert create_agent(model, [], middleware=[retry]).invoke({"messages": ["Hi"]})["messages"][-1].text == "Hello"
    failing(engine, ContextLengthError(5, 3))
    fallback = made("ModelFallbackMiddleware", first_model=model)
    assert create_agent(model, [], middleware=[fallback]).invoke({"messages": ["Hi"]})["messages"][-1].text == "Hello"


def test_human_in_the_loop(agent):
    found, engine, running = agent([RING, "Done."], made("HumanInTheLoopMiddleware", interrupt_on={"ring": True}))
    assert not rung
    assert found[-1].tool_calls
    resumed = running.invoke(Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)["messages"]
    assert (resumed[-1].text, rung) == ("Done.", [2])
    assert len(engine.submitted) == 2


def test_todo_list(agent):
    todos = call("write_todos", f"todos:[{{content:{quoted('ring')},status:{quoted('pending')}}}]")
    found, _, running = agent([todos, "Done."], made("TodoListMiddleware"))
    assert found[-1].text == "Done."
    assert running.get_state(CONFIG).values["todos"] == [{"content": "ring", "status": "pending"}]


def test_limits_of_calls(agent):
    found, *_ = agent([RING] * 3, made("ModelCallLimitMiddleware", run_limit=2, exit_behavior="end"))
    assert sum(isinstance(message, ToolMessage) for message in found) == 2
    found, *_ = agent([RING, RING, "Done."], made("ToolCallLimitMiddleware", run_limit=1, exit_behavior="continue"))
    assert rung == [2, 2, 2]  # two of the first agent, one of this one
    assert found[-1].text == "Done."
    assert [message.status for message in found if isinstance(message, ToolMessage)] == ["success", "error"]


def test_errors_of_tools(agent):
    often = call("ring", "times:9")
    found, *_ = agent([often, "Done."], made("ToolErrorMiddleware", on_error=lambda error, _: f"no: {error}"))
    assert (found[-2].status, found[-2].text) == ("error", "no: that is too often")
    retry = made("ToolRetryMiddleware", max_retries=1, initial_delay=0, jitter=False, on_failure="continue")
    found, *_ = agent([often, "Done."], retry)
    assert rung == [9, 9, 9]
    assert found[-1].text == "Done."


def test_personal_information(agent):
    found, engine, _ = agent(
        ["Hello a@b.org"],
        made("PIIMiddleware", pii_type="email", strategy="redact", apply_to_output=True),
        messages=[HumanMessage("I am x@y.org")],
    )
    assert (found[0].text, found[-1].text) == ("I am [REDACTED_EMAIL]", "Hello [REDACTED_EMAIL]")
    assert len(engine.submitted) == 1


def test_tools_are_selected_by_a_model(agent):
    def other() -> str:
        """Another one."""
        return ""

    chosen = made("LLMToolSelectorMiddleware", max_tools=1)
    found, engine, _ = agent(['{"tools": ["ring"]}<turn|>', "Done."], chosen, tools=(ring, other))
    assert found[-1].text == "Done."
    read = tokenizer().decode(engine.submitted[1]["prompt"])
    assert "declaration:ring" in read
    assert "declaration:other" not in read


def test_tools_are_emulated_by_a_model(scripted):
    rung.clear()
    model, _ = scripted(RING, "ding, I think", "Done.")
    used = made("LLMToolEmulator", model=model)
    found = create_agent(model, [ring], middleware=[used]).invoke({"messages": ["Ring"]})["messages"]
    assert (found[-2].text, found[-1].text, rung) == ("ding, I think", "Done.", [])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # LangChain leaves a shell's pipes open
def test_files_and_a_shell(agent, tmp_path):
    before = set(threading.enumerate())
    (tmp_path / "bell.txt").write_text("ding\n")
    search = made("FilesystemFileSearchMiddleware", root_path=str(tmp_path), use_ripgrep=False)
    found, *_ = agent([call("glob_search", f"pattern:{quoted('*.txt')}"), "Done."], search, tools=())
    assert "bell.txt" in found[-2].text
    shell = made("ShellToolMiddleware", workspace_root=tmp_path, execution_policy=HostExecutionPolicy())
    found, *_ = agent([call("shell", f"command:{quoted('cat bell.txt')}"), "Done."], shell, tools=())
    assert "ding" in found[-2].text
    for reader in set(threading.enumerate()) - before:
        reader.join()
    gc.collect()  # here, and not in the next test


def test_old_results_make_room(agent):
    edit = middleware.ClearToolUsesEdit(trigger=100, keep=1)
    history: list = [HumanMessage("Ring")]
    for number in range(4):
        one = {"name": "ring", "args": {"times": 1}, "id": str(number)}
        history += [AIMessage("", tool_calls=[one]), ToolMessage("ding " * 30, tool_call_id=str(number))]
    used = made("ContextEditingMiddleware", edits=[edit], token_count_method="model")
    found, engine, _ = agent(["Done."], used, messages=history, max_context=600)
    assert found[-1].text == "Done."
    assert len(engine.submitted[0]["prompt"]) < 600


def test_summaries_make_room(agent, scripted):
    model, _ = scripted()
    used = made("SummarizationMiddleware", model=model, trigger=("messages", 6), keep=("messages", 1))
    history = [each for number in range(4) for each in (HumanMessage(f"Question {number}"), AIMessage("Answer"))]
    found, *_ = agent(["SUMMARY", "Done."], used, messages=[*history, HumanMessage("Hi")])
    assert "SUMMARY" in found[0].text
    assert (len(found), found[-1].text) == (3, "Done.")


def test_refusals_are_the_words_of_servers(agent):
    found, *_ = agent(["Done."], made("ModelRefusalMiddleware"))
    assert found[-1].text == "Done."


def test_search_by_the_provider_is_ours(agent):
    found, *_ = agent(["Done."], made("ProviderToolSearchMiddleware", searchable_tools=["ring"]))
    assert found[-1].text == "Done."


def test_a_decision_model_routes(scripted):
    decisions = pytest.importorskip("langchain_gemma_jax.decisions")
    model, engine = scripted("B", "Hello", "A", "Hello")
    choices = {
        "small": middleware.ModelChoice(model=model.model_copy(update={"model": "small"}), criteria="small talk"),
        "large": middleware.ModelChoice(model=model.model_copy(update={"model": "large"}), criteria="work"),
    }
    with pytest.warns(match="beta"):
        router = made(
            "ModelRouterMiddleware",
            choices=choices,
            instructions="Who?",
            classifier=decisions.GemmaDecisionModel(model="judge"),
        )
    agent = create_agent(model, [], middleware=[router])
    for size in ("large", "small"):
        found = agent.invoke({"messages": ["Hi"]})
        assert found["messages"][-1].response_metadata["model_name"] == size
        assert found["model_route"].choice == size
    assert [bool(request["sampling"].scored) for request in engine.submitted] == [True, False] * 2


def test_a_decision_model_guards_calls(scripted):
    decisions = pytest.importorskip("langchain_gemma_jax.decisions")
    rung.clear()
    model, _ = scripted(RING, "Yes", "Sorry.", RING, "No", "Done.")
    guard = made("AutoModeMiddleware", tools=["ring"], classifier=decisions.GemmaDecisionModel(model="judge"))
    agent = create_agent(model, [ring], middleware=[guard])
    found = agent.invoke({"messages": ["Ring"]})["messages"]
    assert (found[-2].status, found[-1].text, rung) == ("error", "Sorry.", [])
    found = agent.invoke({"messages": ["Ring"]})["messages"]
    assert (found[-2].status, found[-1].text, rung) == ("success", "Done.", [2])


def test_every_middleware_is_here():
    shipped = {name for name in middleware.__all__ if name.endswith("Middleware")} - {"AgentMiddleware"}
    text = Path(__file__).read_text()
    assert {name for name in shipped if f'"{name}"' not in text} == set()
