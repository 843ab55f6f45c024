from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, Thinking, ToolCall, ToolResult, result_value
from langchain_gemma_jax.errors import InputError


@pytest.mark.parametrize(
    ("result", "payload"),
    [
        (ToolResult("sunny"), {"value": "sunny"}),
        (ToolResult(None), {"value": None}),
        (ToolResult([1]), {"value": [1]}),
        (ToolResult({"t": 3}), {"t": 3}),
        (ToolResult("no", is_error=True), {"error": "no"}),
        (ToolResult({"t": 3}, is_error=True), {"error": {"t": 3}}),
        (ToolResult({"error": "no"}, is_error=True), {"error": "no"}),
    ],
)
def test_a_result_as_an_object(result, payload):
    assert result.payload == payload


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"t": 3, "x": [null]}', {"t": 3, "x": [None]}),
        (' {"t": 3}\n', {"t": 3}),
        ("{}", {}),
        *(
            (text, text)
            for text in ("3", "[1]", "null", '"x"', "sunny", "", "{not json}", '{"t": NaN}', '{"t": 1} and more')
        ),
        *(
            (text, text)
            for text in ('{"a":' * 62 + "{}" + "}" * 62 + "]", '{"a":' * 100_000, '{"a":' * 80 + "1" + "}" * 80)
        ),
    ],
)
def test_a_tools_text_is_an_object_if_it_says_so(text, value):
    assert result_value(text) == value


def test_an_object_as_deep_as_a_format_can_show_is_one():
    assert isinstance(result_value('{"a":' * 63 + "1" + "}" * 63), dict)
    assert isinstance(result_value('{"a":' * 64 + "1" + "}" * 64), str)


@pytest.mark.parametrize(
    "made",
    [
        lambda: Message("developer"),
        lambda: Message("tool"),
        lambda: Message("user", result=ToolResult(1)),
        lambda: Message("user", calls=(ToolCall("f"),)),
        lambda: Message("system", (Thinking("Hm"),)),
    ],
)
def test_a_message_that_cannot_be_is_refused(made):
    with pytest.raises(InputError):
        made()
