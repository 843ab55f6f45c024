"""Packages beside LangChain: supervisors, swarms, deep agents, and tools of MCP servers."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from textwrap import dedent

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_gemma_jax.middleware import RepeatedCallMiddleware
from tests.chat.entry_points import entry_points
from tests.dialects.vocabulary import tokenizer

SERVER = """
    from mcp.server.fastmcp import FastMCP
    from mcp.types import TextContent

    server = FastMCP("bell")

    @server.tool()
    def ring(times: int) -> str:
        '''Rings the bell.'''
        return "ding " * times

    @server.tool()
    def look() -> list:
        '''Looks at the bell.'''
        return [TextContent(type="text", text="It is bronze."), TextContent(type="text", text="It is old.")]

    server.run()
"""


def call(name: str, arguments: str = "") -> str:
    return f"<|tool_call>call:{name}{{{arguments}}}<tool_call|><|tool_response>"


def ring(times: int) -> str:
    """Rings the bell."""
    return "ding " * times


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved")  # which the package itself calls
def test_a_supervisor_hands_work_on(scripted):
    supervisor = pytest.importorskip("langgraph_supervisor")
    model, engine = scripted(call("transfer_to_ringer"), call("ring", "times:2"), "It rang.", "All done.")
    ringer = create_agent(model, [ring], name="ringer")
    made = supervisor.create_supervisor([ringer], model=model, prompt="Hand work on.").compile()
    found = made.invoke({"messages": [HumanMessage("Ring")]})["messages"]
    assert found[-1].text == "All done."
    assert any(message.text == "It rang." for message in found)
    assert not engine.answers


def test_a_swarm_changes_hands(scripted):
    swarm = pytest.importorskip("langgraph_swarm")
    model, engine = scripted(call("transfer_to_ringer"), call("ring", "times:2"), "It rang.")
    talker = create_agent(model, [swarm.create_handoff_tool(agent_name="ringer")], name="talker")
    ringer = create_agent(model, [ring], name="ringer")
    made = swarm.create_swarm([talker, ringer], default_active_agent="talker").compile()
    found = made.invoke({"messages": [HumanMessage("Ring")]})
    assert (found["messages"][-1].text, found["active_agent"]) == ("It rang.", "ringer")
    assert not engine.answers


async def test_tools_of_an_mcp_server(scripted, tmp_path):
    adapters = pytest.importorskip("langchain_mcp_adapters.client")
    server = tmp_path / "server.py"
    server.write_text(dedent(SERVER))
    told = {"bell": {"command": sys.executable, "args": [str(server)], "transport": "stdio"}}
    tools = await adapters.MultiServerMCPClient(told).get_tools()
    model, engine = scripted(call("ring", "times:2"), call("look"), "It rang, and is old.")
    agent = create_agent(model, tools, middleware=[RepeatedCallMiddleware()])
    found = (await agent.ainvoke({"messages": [HumanMessage("Ring")]}))["messages"]
    assert found[-1].text == "It rang, and is old."
    assert [message.status for message in found if isinstance(message, ToolMessage)] == ["success"] * 2
    read = tokenizer().decode(engine.submitted[2]["prompt"])
    assert "ding ding" in read
    assert "It is bronze." in read
    assert "It is old." in read


@pytest.fixture
def deepagents(monkeypatch):
    """deepagents, which finds this package as if it were installed."""
    found = pytest.importorskip("deepagents")
    profiles = import_module("deepagents.profiles._builtin_profiles")

    def ours(group: str) -> list[EntryPoint]:
        return [each for each in entry_points() if each.group == group]

    monkeypatch.setattr(profiles, "entry_points", ours)
    return found


def test_a_deep_agent_works_with_files(scripted, deepagents):
    write = call("write_file", 'file_path:<|"|>/a.txt<|"|>,content:<|"|>ding<|"|>')
    read = call("read_file", 'file_path:<|"|>/a.txt<|"|>')
    scripted(write, read, "Done.")
    found = deepagents.create_deep_agent(model="gemma_jax:sprout-m").invoke({"messages": [("user", "Write")]})
    assert found["messages"][-1].text == "Done."
    assert [message.status for message in found["messages"] if isinstance(message, ToolMessage)] == ["success"] * 2
    assert "ding" in found["messages"][-2].text


def test_a_deep_agent_whose_context_is_full_goes_on(scripted, deepagents):
    room = 20000
    _, engine = scripted("SUMMARY", "Done.", room=room)
    long = "x " * 60
    history = [each for n in range(120) for each in (HumanMessage(f"Question {n} {long}"), AIMessage(f"Answer {n}"))]
    agent = deepagents.create_deep_agent(model="gemma_jax:scripted")
    found = agent.invoke({"messages": [*history, HumanMessage("Hi")]})["messages"]
    assert found[-1].text == "Done."
    assert len(engine.submitted) == 2  # what was refused first never came to the engine
    assert "SUMMARY" in tokenizer().decode(engine.submitted[1]["prompt"])
