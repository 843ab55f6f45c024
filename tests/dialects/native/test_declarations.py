"""Tools as the published templates declare them."""

from __future__ import annotations

from langchain_gemma_jax.dialects import Message, Tool
from langchain_gemma_jax.dialects.gemma4 import Gemma4Dialect


def test_odd_schemas_are_shown_as_far_as_they_go():
    odd = {
        "type": "object",
        "properties": {"a": 3, "b": {"type": "array", "items": {"required": "x", "properties": 1}}},
    }
    text = Gemma4Dialect().render([Message.user("Hi")], [Tool("t", "", odd | {"required": "a"})]).text
    assert 'a:{type:<|"|><|"|>}' in text
    assert "b:{items:{properties:{},required:[],type:" in text
