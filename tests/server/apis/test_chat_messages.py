"""OpenAI's messages, by what is asked of the engine."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.server.apis.chat_messages import chat_messages


def test_messages_of_all_roles():
    call = {"id": "c", "type": "function", "function": {"name": "ring", "arguments": '{"n": 3}'}}
    found = chat_messages(
        [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm"},
            {"role": "tool", "tool_call_id": "c", "content": "ding"},
        ]
    )
    assert [type(each) for each in found] == [SystemMessage, HumanMessage, AIMessage, ToolMessage]
    assert found[2].tool_calls[0]["args"] == {"n": 3}
    assert found[2].additional_kwargs == {"reasoning_content": "Hm"}
