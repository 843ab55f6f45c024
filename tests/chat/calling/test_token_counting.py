"""Tokens are counted as they are read."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage


def test_counting_is_exact(scripted):
    model, engine = scripted("Hello", "Hello")
    tool = {"name": "ring", "description": "Rings", "input_schema": {"type": "object", "properties": {}}}
    messages = [SystemMessage("Be brief."), HumanMessage("Hi")]
    model.invoke(messages)
    model.bind_tools([tool]).invoke(messages)
    without, with_tool = (len(request["prompt"]) for request in engine.submitted)
    assert model.get_num_tokens_from_messages(messages) == without
    assert model.get_num_tokens_from_messages(messages, [tool]) == with_tool > without
    assert model.get_num_tokens("Hi") == 2
    assert model.get_num_tokens_from_messages([]) == 0


def test_a_piece_of_a_conversation_can_be_counted(scripted):
    # trim_messages counts whatever is left of a conversation when its beginning is cut off.
    model, _ = scripted()
    results = [ToolMessage("done", tool_call_id="c1", name="ring"), ToolMessage("done", tool_call_id="c2")]
    assert model.get_num_tokens_from_messages(results) > model.get_num_tokens_from_messages(results[1:]) > 0
    answer = AIMessage("", tool_calls=[{"name": "ring", "args": {}, "id": "c1"}])
    assert model.get_num_tokens_from_messages([answer, *results, HumanMessage("Hi")]) > 0
