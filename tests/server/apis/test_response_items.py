"""Items of OpenAI's responses, by what is asked of the engine."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.server.apis.response_items import response_input


def test_a_conversation_of_items():
    found = response_input(
        "Be brief.",
        [
            {"role": "user", "content": [{"type": "input_text", "text": "Ring"}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Well"}]},
            {"type": "function_call", "call_id": "a", "name": "ring", "arguments": '{"n": 1}'},
            {"type": "function_call", "call_id": "b", "name": "ring", "arguments": '{"n": 2}'},
            {"type": "function_call_output", "call_id": "a", "output": "ding"},
            {"type": "function_call_output", "call_id": "b", "output": "dong"},
        ],
    )
    assert [type(each) for each in found] == [SystemMessage, HumanMessage, AIMessage, ToolMessage, ToolMessage]
    assert (found[2].text, [call["args"]["n"] for call in found[2].tool_calls]) == ("Well", [1, 2])


def test_what_was_called_in_one_go_is_one_message_that_is_made_once(monkeypatch):
    from langchain_gemma_jax.server.apis import response_items

    made: list[object] = []
    kind = response_items.AIMessage
    monkeypatch.setattr(response_items, "AIMessage", lambda *told, **how: made.append(kind(*told, **how)) or made[-1])
    item = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    (found,) = response_items.response_input(None, [item] * 500)
    assert made == [found]
    assert len(found.tool_calls) == 500
