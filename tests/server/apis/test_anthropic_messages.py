"""Anthropic's requests, by what is asked of the engine."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.server.apis.anthropic_messages import anthropic_conversation
from tests.serving import asked

PATH = "/v1/messages"


HELLO = {"model": "scripted", "max_tokens": 50, "messages": [{"role": "user", "content": "Hi"}]}


def test_a_conversation_with_tools_and_thoughts():
    found = anthropic_conversation(
        [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        [
            {"role": "user", "content": [{"type": "text", "text": "Ring"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm", "signature": ""},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "tool_use", "id": "t", "name": "ring", "input": {"n": 3}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t", "content": "broken", "is_error": True},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
    )
    assert [type(each) for each in found] == [SystemMessage, HumanMessage, AIMessage, ToolMessage, HumanMessage]
    assert found[2].tool_calls[0]["args"] == {"n": 3}
    assert found[3].status == "error"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_tokens": None}, "max_tokens: expected"),
        ({"messages": [{"role": "robot", "content": ""}]}, "expected 'user' or 'assistant'"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "found none"),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "another company's server runs"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"output_config": {"format": {"type": "yaml"}}}, "output_config.format.type"),
    ],
)
def test_what_is_not_possible_is_said(at, says, change, said):
    says("Hello<turn|>")
    status, found, _ = asked(at, PATH, HELLO | change)
    assert status == 400
    assert (found["type"], found["error"]["type"]) == ("error", "invalid_request_error")
    assert said in found["error"]["message"]
