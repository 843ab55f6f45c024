"""Results, and the calls that they answer, in every format."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, RenderOptions, ToolCall
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError
from tests.dialects.outputs import DIALECTS

RING = ToolCall("ring", {}, "1")


def test_results_without_ids_and_names_answer_the_calls_in_their_order():
    calls = [ToolCall("first"), ToolCall("second")]
    messages = [Message.user("Hi"), Message.assistant(calls=calls), *(Message.tool(n) for n in range(3))]
    text = Gemma4Dialect().render(messages).text
    assert text.endswith(
        "<|tool_response>response:first{value:0}<tool_response|><|tool_response>response:second{value:1}"
        "<tool_response|><|tool_response>response:unknown{value:2}<tool_response|>"
    )


@pytest.mark.parametrize(
    ("messages", "number"),
    [
        ([Message.tool("dong")], 0),
        ([Message.user("Hi"), Message.tool("dong")], 1),
        ([Message.user("Hi"), Message.assistant("Hm."), Message.tool("dong")], 2),
        ([Message.user("Hi"), Message.assistant(calls=[RING]), Message.user("?"), Message.tool("dong")], 3),
    ],
)
@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_result_that_answers_no_call_is_refused(dialect, messages, number):
    with pytest.raises(InputError, match=rf"messages\[{number}\] is a tool's result"):
        dialect.render(messages)


@pytest.mark.parametrize("dialect", [dialect for dialect in DIALECTS.values() if not dialect.thinks])
def test_a_format_without_thoughts_cannot_be_told_to_think_and_leaves_them_out(dialect):
    said = [Message.user("Hi"), Message.assistant("Yes.", thinking="Hm")]
    assert "Hm" not in dialect.render(said).text
    with pytest.raises(InputError, match="thinking"):
        dialect.render(said, [], RenderOptions(thinking=True))
    with pytest.raises(InputError, match="in_thought"):
        dialect.parser(in_thought=True)
