"""LangGraph: what is kept between steps, interrupts, branches, graphs in graphs, and its ways to stream."""

from __future__ import annotations

import json
import operator
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

pytestmark = pytest.mark.slow
CONFIG = {"configurable": {"thread_id": "1"}}


def talk(model, **compiled: object):
    """A graph of one model."""
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_edge(START, "model")
    return graph.compile(**compiled)


def test_a_conversation_is_kept_in_memory(chat_of):
    graph = talk(chat_of(), checkpointer=InMemorySaver())
    first = graph.invoke({"messages": ["HELLO"]}, CONFIG)["messages"][-1]
    second = graph.invoke({"messages": ["AND?"]}, CONFIG)["messages"][-1]
    reused = second.usage_metadata["input_token_details"]["cache_read"]
    assert reused >= first.usage_metadata["input_tokens"]
    assert len(graph.get_state(CONFIG).values["messages"]) == 4


async def test_a_conversation_is_kept_in_sqlite(chat_of, tmp_path):
    sqlite = pytest.importorskip("langgraph.checkpoint.sqlite")
    aio = pytest.importorskip("langgraph.checkpoint.sqlite.aio")
    path = str(tmp_path / "kept.sqlite")
    with sqlite.SqliteSaver.from_conn_string(path) as kept:
        talk(chat_of(), checkpointer=kept).invoke({"messages": ["HELLO"]}, CONFIG)
    with sqlite.SqliteSaver.from_conn_string(path) as kept:  # as another process would
        found = talk(chat_of(), checkpointer=kept).invoke({"messages": ["AND?"]}, CONFIG)["messages"]
    assert len(found) == 4
    assert found[-1].usage_metadata["input_token_details"]["cache_read"] > 0
    async with aio.AsyncSqliteSaver.from_conn_string(path) as kept:
        graph = StateGraph(MessagesState)

        async def model(state):
            return {"messages": [await chat_of().ainvoke(state["messages"])]}

        graph.add_node("model", model)
        graph.add_edge(START, "model")
        found = (await graph.compile(checkpointer=kept).ainvoke({"messages": ["SO?"]}, CONFIG))["messages"]
    assert len(found) == 6


def test_checkpoints_carry_nothing_of_an_engine(scripted):
    """Checkpoints go to any database and on in any process, which reads the conversation again or finds it."""
    call = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
    model, engine = scripted("<|channel>thought\nHm<channel|>Hello.", call, thinking=True)
    saver = InMemorySaver()
    graph = talk(model.bind_tools([{"title": "ring", "description": "", "type": "object"}]), checkpointer=saver)
    for said in ("Hi", "Ring"):
        graph.invoke({"messages": [said]}, CONFIG)
    checkpoints = [each.checkpoint for each in saver.list(CONFIG)]
    assert len(checkpoints) >= 4, "two turns, each before and after its answer"
    for checkpoint in checkpoints:
        kind, data = saver.serde.dumps_typed(checkpoint)
        assert kind == "msgpack", "nothing in it has to be pickled"
        assert len(data) < 10_000, "as long as the words, not as what an engine keeps of them"
        for message in checkpoint["channel_values"].get("messages", ()):
            assert json.loads(message.model_dump_json()) == message.model_dump(), "plain values alone"
            assert not {"ids", "keys", "pages", "prompt"} & set(message.response_metadata)
    other, fresh = scripted("Done.")  # another process, that has never heard of it
    graph = talk(other, checkpointer=saver)
    result = ToolMessage("ding", tool_call_id=graph.get_state(CONFIG).values["messages"][-1].tool_calls[0]["id"])
    assert graph.invoke({"messages": [result]}, CONFIG)["messages"][-1].text == "Done."
    assert fresh is not engine
    assert len(fresh.submitted) == 1


def test_an_interrupt_waits_for_a_person(scripted):
    model, engine = scripted("Shall I?", "Done.")

    def ask(state):
        return {"messages": [HumanMessage(interrupt("may it?"))]}

    graph = StateGraph(MessagesState)
    graph.add_node("plan", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("ask", ask)
    graph.add_node("do", lambda state: {"messages": [model.invoke(state["messages"])]})
    for one, next_one in ((START, "plan"), ("plan", "ask"), ("ask", "do"), ("do", END)):
        graph.add_edge(one, next_one)
    running = graph.compile(checkpointer=InMemorySaver())
    stopped = running.invoke({"messages": ["Ring"]}, CONFIG)
    assert stopped["__interrupt__"][0].value == "may it?"
    assert len(engine.submitted) == 1
    assert running.invoke(Command(resume="yes"), CONFIG)["messages"][-1].text == "Done."


class Answers(TypedDict):
    """The findings of the branches."""

    questions: list[str]
    found: Annotated[list[str], operator.add]


def test_parallel_branches_share_the_engine(chat_of):
    model = chat_of()
    alone = {question: model.invoke(question).text for question in ("A", "BE", "SEE")}

    graph = StateGraph(Answers)
    graph.add_node("one", lambda state: {"found": [f"{state['question']}={model.invoke(state['question']).text}"]})
    graph.add_conditional_edges(
        START, lambda state: [Send("one", {"question": each}) for each in state["questions"]], ["one"]
    )
    found = graph.compile().invoke({"questions": list(alone), "found": []})["found"]
    assert found == [f"{question}={answer}" for question, answer in alone.items()]


async def test_a_graph_in_a_graph_streams_in_every_mode(scripted):
    model, _ = scripted(*["one two three"] * 2)
    inner = talk(model)

    def tell(state):
        get_stream_writer()({"seen": len(state["messages"])})
        return {}

    graph = StateGraph(MessagesState)
    graph.add_node("inner", inner)
    graph.add_node("tell", tell)
    for one, next_one in ((START, "inner"), ("inner", "tell"), ("tell", END)):
        graph.add_edge(one, next_one)
    outer = graph.compile()
    seen: dict[str, list] = {}
    modes = ["values", "updates", "messages", "custom", "debug"]
    for path, mode, value in outer.stream({"messages": ["Hi"]}, stream_mode=modes, subgraphs=True):
        seen.setdefault(mode, []).append((path, value))
    assert set(seen) == set(modes)
    chunks = [value[0] for path, value in seen["messages"] if path and isinstance(value[0], AIMessageChunk)]
    assert "".join(chunk.text for chunk in chunks) == "one two three"
    assert len(chunks) > 2
    assert seen["custom"][0][1] == {"seen": 2}
    events = [event async for event in outer.astream_events({"messages": ["Hi"]}, version="v2")]
    told = [event for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(event["data"]["chunk"].text for event in told) == "one two three"
