"""Values in the native notation."""

from __future__ import annotations

import pytest

from langchain_gemma_jax.dialects import Message, ToolCall
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect
from langchain_gemma_jax.errors import InputError


@pytest.mark.parametrize("key", ["a:b", "{", "a,b", "[0]", '"q"', " a", "a ", "\n", ""])
def test_a_key_that_could_be_misread_is_quoted(key):
    messages = [Message.user("Hi"), Message.assistant(calls=[ToolCall("f", {key: 1})])]
    assert f'call:f{{<|"|>{key}<|"|>:1}}' in Gemma4Dialect().render(messages).text


@pytest.mark.parametrize("value", [object(), {"a": {1, 2}}, [b"x".__class__]])
def test_what_is_no_json_is_refused(value):
    with pytest.raises(InputError, match="JSON values"):
        Gemma4Dialect().render([Message.user("Hi"), Message.assistant(calls=[ToolCall("f", {"a": value})])])


def test_what_is_nested_too_deep_is_refused():
    value: object = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(InputError, match="64 levels"):
        Gemma4Dialect().render([Message.user("Hi"), Message.assistant(calls=[ToolCall("f", {"a": value})])])


def test_a_number_that_python_does_not_print_is_refused():
    with pytest.raises(InputError, match="too many digits"):
        Gemma4Dialect().render([Message.user("Hi"), Message.assistant(calls=[ToolCall("f", {"a": 10**5000})])])
