"""The parts that OpenAI's two APIs have in common."""

from __future__ import annotations

from langchain_gemma_jax.server.apis.chat_completions import ChatCompletions
from langchain_gemma_jax.server.apis.openai_parts import checked_functions, thinks

PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


RING = {"type": "function", "function": {"name": "ring", "description": "Rings", "parameters": PARAMETERS}}


def test_parts():
    assert [thinks(each, "x") for each in (None, "none", "minimal", "low", "high")] == [False, False, False, True, True]
    assert checked_functions([RING], flat=False) == [RING]
    flat = {"type": "function", "name": "ring"}
    assert checked_functions([flat], flat=True)[0]["function"] == {"name": "ring", "description": "", "parameters": {}}
    assert ChatCompletions.streams_as.startswith("text/event-stream")
