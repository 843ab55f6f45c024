"""A message's facts about its answer: tokens, thoughts, probabilities."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage

CALL = '<|tool_call>call:ring{how:<|"|>softly<|"|>,times:2}<tool_call|>'


def streamed(model, **given) -> AIMessageChunk:
    first, *rest = model.stream("Go", **given)
    return first + rest


def test_a_thought_that_the_prompt_began_counts(scripted):
    model, _ = scripted(f"{CALL}<|tool_response>", "Hmm.\n<channel|>Done.<turn|>", thinking=True)
    answer = model.invoke("Ring")
    result = ToolMessage("done", tool_call_id=answer.tool_calls[0]["id"])
    done = model.invoke([HumanMessage("Ring"), answer, result])
    assert [block["type"] for block in done.content_blocks] == ["reasoning", "text"]
    assert done.usage_metadata["output_token_details"] == {"reasoning": len("Hmm.\n") + 1}


@pytest.mark.parametrize("version", [None, "v1"])
def test_logprobs_come_once_each(version, scripted):
    model, _ = scripted(f"{CALL}é<turn|>", f"{CALL}é<turn|>", logprobs=True, top_logprobs=1, output_version=version)
    whole, chunks = model.invoke("Go"), streamed(model)
    told = whole.response_metadata["logprobs"]["content"]
    assert chunks.response_metadata["logprobs"]["content"] == told
    assert [each["token"] for each in told][:2] == ["<|tool_call>", "c"]
    assert bytes(told[-3]["bytes"] + told[-2]["bytes"]).decode() == "é"
    assert told[0]["top_logprobs"] == [{"token": "<|tool_call>", "bytes": [], "logprob": -0.5}]
    assert len(told) == whole.usage_metadata["output_tokens"]
