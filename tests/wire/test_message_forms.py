"""Messages cross the wire: what a model is told of them, and nothing that names code."""

from __future__ import annotations

import base64
import json

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from langchain_gemma_jax import InputError
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.errors import MediaAccessError
from langchain_gemma_jax.wire.message_forms import messages_in, messages_out, to_json

CALL = {"name": "ring", "args": {"n": 3, "who": "Наталья \ud800"}, "id": "c", "type": "tool_call"}
BROKEN = {"name": "ring", "args": '{"n', "id": "d", "error": "cut off", "type": "invalid_tool_call"}
CONVERSATION = [
    SystemMessage("Be brief."),
    HumanMessage([{"type": "text", "text": "Hi"}, "there"], name="me"),
    AIMessage("Well", tool_calls=[CALL], invalid_tool_calls=[BROKEN], additional_kwargs={"reasoning_content": "Hm"}),
    ToolMessage("ding", tool_call_id="c", status="error", artifact=object()),
    ToolMessage("dong", tool_call_id="d"),
    AIMessageChunk("Done", response_metadata={"model_name": "x", "logprobs": {"content": []}}),
    ChatMessage("Thanks", role="user"),
]


def test_files_and_bytes_are_sent_with_the_conversation(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG one")
    by_path = {"type": "image", "path": str(tmp_path / "a.png")}
    blocks = ["Look", by_path, {"type": "file", "data": b"%PDF two"}, {"type": "image", "url": "https://example.org/a"}]
    told = json.loads(to_json(messages_out([HumanMessage(blocks)], [str(tmp_path)])))
    assert told[0]["content"] == [
        "Look",
        {"type": "image", "base64": base64.b64encode(b"\x89PNG one").decode()},
        {"type": "file", "base64": base64.b64encode(b"%PDF two").decode()},
        {"type": "image", "url": "https://example.org/a"},
    ]
    (back,) = conversation(messages_in(told))
    assert [part.block.inline(99) for part in back.media] == [b"\x89PNG one", b"%PDF two", None]
    with pytest.raises(MediaAccessError, match=r"messages\[0\].content\[0\]: paths of files are off"):
        messages_out([HumanMessage([by_path])])


def test_a_conversation_means_the_same():
    told = json.loads(to_json(messages_out(CONVERSATION)))
    back = messages_in(told)
    assert conversation(back) == conversation(CONVERSATION)
    assert [each.type for each in back[:5]] == [each.type for each in CONVERSATION[:5]]
    assert back[5].response_metadata == {"model_name": "x"}
    assert messages_in(json.loads(to_json(messages_out([FunctionMessage("x", name="f")]))))[0].name == "f"


@pytest.mark.parametrize(
    "told",
    [
        None,
        [3],
        [{}],
        [{"type": "robot"}],
        [{"type": ["human"]}],
        [{"lc": 1, "type": "constructor", "id": ["langchain", "prompts"]}],
        [{"type": "human", "content": 3}],
        [{"type": "tool", "content": "x"}],
        [{"type": "ai", "content": "", "tool_calls": [{"name": 3}]}],
    ],
)
def test_what_is_none_is_refused(told):
    with pytest.raises(InputError, match="messages"):
        messages_in(told)


def test_what_cannot_be_sent_is_said():
    with pytest.raises(InputError):
        messages_out([RemoveMessage(id="x")])
    for value in (float("nan"), object(), {"a": {1, 2}}):
        with pytest.raises(InputError, match="has to be JSON"):
            to_json(value)
