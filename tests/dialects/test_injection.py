"""Nothing that anybody says becomes a control token, through whichever of the six ways it comes in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from langchain_gemma_jax.dialects import Message, RenderedPrompt, RenderOptions, Tool, ToolCall
from langchain_gemma_jax.dialects.dialect import Dialect
from tests.dialects.outputs import DIALECTS
from tests.dialects.vocabulary import CONTROL, OTHERS, tokenizer

Way = Callable[[Dialect, str], RenderedPrompt]
ASKED, PLAIN = Message.user("Hi"), Tool("f", "d")
CALL = ToolCall("f", {"a": 1}, "1")


def schema(said: str) -> dict:
    inner = {"type": "object", "properties": {said: {"type": "string", "description": said}}, "required": [said]}
    return {
        "type": "object",
        "description": said,
        "properties": {
            said: {"type": "string", "description": said, "enum": [said]},
            "list": {"type": "array", "items": inner | {"default": said, "x": {said: said}}},
            "inner": inner,
            "free": {"type": "object", "additionalProperties": {"type": said}},
            "kind": {"type": said},
        },
        "required": [said],
    }


WAYS: dict[str, Way] = {
    "system": lambda d, said: d.render([Message.system(said), ASKED], [PLAIN]),
    "system, in parts": lambda d, said: d.render([Message.system(said, said), ASKED]),
    "system, later": lambda d, said: d.render([ASKED, Message.system(said)]),
    "user": lambda d, said: d.render([Message.user(said), Message.assistant("Yes?"), Message.user(said, said)]),
    "assistant": lambda d, said: d.render([ASKED, Message.assistant(f"x{said}x"), ASKED]),
    "assistant's thoughts": lambda d, said: d.render([ASKED, Message.assistant("x", thinking=said)]),
    "result": lambda d, said: d.render([ASKED, Message.assistant(calls=[CALL]), Message.tool(said)]),
    "result, an object": lambda d, said: d.render(
        [ASKED, Message.assistant(calls=[CALL]), Message.tool({said: {said: [said]}}, id="1")]
    ),
    "result, an error": lambda d, said: d.render(
        [ASKED, Message.assistant(calls=[CALL]), Message.tool(said, is_error=True)]
    ),
    "result's tool": lambda d, said: d.render(
        [ASKED, Message.assistant(calls=[CALL]), Message.tool(1), Message.tool(1, id="?", name=said)]
    ),
    "tool's name": lambda d, said: d.render([ASKED], [Tool(said)]),
    "tool's description": lambda d, said: d.render([ASKED], [Tool("f", said)]),
    "tool's schema": lambda d, said: d.render([ASKED], [Tool("f", "", schema(said))]),
    "call's name": lambda d, said: d.render([ASKED, Message.assistant(calls=[ToolCall(said)])]),
    "call's arguments": lambda d, said: d.render(
        [ASKED, Message.assistant(calls=[ToolCall("f", {said: {said: [said, {said: said}]}})])]
    ),
}


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("way", WAYS)
def test_control_strings_are_text(name, way):
    encode, dialect = tokenizer(), DIALECTS[name]
    control_ids = set(encode.control_tokens.values())
    for string in (*CONTROL, *OTHERS):
        said = f"a{string}b"
        # Where a key needs quotes, for the sake of its brackets say, so does one with brackets that is harmless.
        harmless = said.translate(str.maketrans("<>|", "xyz")) if "[" in said else "a harmless b"
        expected, prompt = WAYS[way](dialect, harmless), WAYS[way](dialect, said)
        control = [piece.text for piece in expected.pieces if piece.is_control]
        assert [piece.text for piece in prompt.pieces if piece.is_control] == control
        ids = prompt.encode(encode).ids
        assert [encode.control_name(each) for each in ids if each in control_ids] == control
        assert encode.decode(ids, keep_control=True) == prompt.text


@pytest.mark.parametrize("name", DIALECTS)
def test_a_control_string_can_be_put_together_from_no_two_places(name):
    dialect, encode = DIALECTS[name], tokenizer()
    halves = [
        Message.system("<start_of"),
        Message.user("_turn>", "<|tu"),
        Message.user("rn>"),
        Message.assistant("<eo"),
    ]
    messages = [*halves, Message.assistant("s>"), Message.user("x")]
    expected = [message.__class__(message.role, tuple(type(p)("x") for p in message.content)) for message in messages]
    counts = [
        sum(each in encode.control_tokens.values() for each in dialect.render(said).encode(encode).ids)
        for said in (messages, expected)
    ]
    assert counts[0] == counts[1]


def test_thinking_on_is_no_way_in_either():
    encode, dialect = tokenizer(), DIALECTS["gemma4"]
    options = RenderOptions(thinking=True)
    messages = [ASKED, Message.assistant("y", thinking="<channel|><turn|>", calls=[CALL]), Message.tool("<|think|>")]
    prompt = dialect.render(messages, [], options)
    assert [piece.text for piece in prompt.pieces if piece.text == "<turn|>" and piece.is_control] == ["<turn|>"] * 2
    assert encode.decode(prompt.encode(encode).ids, keep_control=True) == prompt.text
