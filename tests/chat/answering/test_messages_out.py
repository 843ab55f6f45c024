"""A model's output as LangChain's messages: whole and in chunks, which are the same."""

from __future__ import annotations

import contextlib
import json

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.utils.json import parse_partial_json

from langchain_gemma_jax.chat.answering.messages_out import unrepairable

THOUGHT = "<|channel>thought\nHmm.\n<channel|>"
CALL = '<|tool_call>call:ring{how:<|"|>softly<|"|>,times:2}<tool_call|>'
ANSWERS = {
    "words": "Hello, 東京!<turn|>",
    "thought": f"{THOUGHT}Hello.<turn|>",
    "call": f"{CALL}<|tool_response>",
    "words and calls": f"At once. {CALL}{CALL}<|tool_response>",
    "thought and call": f"{THOUGHT}{CALL}<|tool_response>",
    "call without arguments": "<|tool_call>call:stop{}<tool_call|><|tool_response>",
    "nothing": "<turn|>",
}
BROKEN = {
    "in a string": ('<|tool_call>call:ring{how:<|"|>so', "ring"),
    "in a number": ("<|tool_call>call:ring{times:2", "ring"),
    "behind a key": ("<|tool_call>call:ring{times", "ring"),
    "in the name": ("<|tool_call>call:ri", None),
    "nonsense": ("<|tool_call>what?<tool_call|><|tool_response>", None),
}


def streamed(model, **given) -> AIMessageChunk:
    first, *rest = model.stream("Go", **given)
    return first + rest


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("at_once", [1, 1000])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_chunks_are_the_whole(answer, at_once, version, scripted):
    model, _ = scripted(answer, answer, at_once=at_once, output_version=version)
    whole, chunks = model.invoke("Go"), streamed(model)
    assert chunks.text == whole.text
    assert [(call["name"], call["args"]) for call in chunks.tool_calls] == [
        (call["name"], call["args"]) for call in whole.tool_calls
    ]
    plain = [{k: v for k, v in block.items() if k not in ("id", "index")} for block in whole.content_blocks]
    assert plain == [{k: v for k, v in block.items() if k not in ("id", "index")} for block in chunks.content_blocks]
    assert chunks.usage_metadata == whole.usage_metadata
    ours = {k: v for k, v in chunks.response_metadata.items() if k != "timings"}
    assert ours == {k: v for k, v in whole.response_metadata.items() if k != "timings"}
    assert chunks.chunk_position == "last"


def test_an_answer_with_everything(scripted):
    model, _ = scripted(f"{THOUGHT}At once. {CALL}<|tool_response>", thinking=True)
    answer = model.invoke("Ring")
    assert answer.content == "At once. "
    assert [block["type"] for block in answer.content_blocks] == ["reasoning", "text", "tool_call"]
    assert answer.content_blocks[0]["reasoning"] == "Hmm."
    (call,) = answer.tool_calls
    assert (call["name"], call["args"], call["type"]) == ("ring", {"how": "softly", "times": 2}, "tool_call")
    assert call["id"].startswith("call_")
    assert answer.response_metadata["finish_reason"] == "tool_calls"
    assert answer.response_metadata["model_name"] == "scripted"
    usage = answer.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_token_details"] == {"cache_read": usage["input_tokens"] // 2}
    assert usage["output_token_details"] == {"reasoning": len("thought\nHmm.\n") + 2}


BARE = {
    "at the beginning": 'call:ring{how:<|"|>softly<|"|>,times:2}<turn|>',
    "behind a thought": f'{THOUGHT}call:ring{{how:<|"|>softly<|"|>,times:2}}<tool_call|><|tool_response>',
    "in round brackets": '\ncall:ring(how="softly", times=2)<turn|>',
}


@pytest.mark.parametrize("at_once", [1, 3, 1000])
@pytest.mark.parametrize("answer", BARE.values(), ids=list(BARE))
def test_a_call_without_its_opener_is_a_call_of_a_tool_that_there_is(answer, at_once, scripted):
    ring = {
        "name": "ring",
        "description": "Ring.",
        "parameters": {"type": "object", "properties": {"how": {}, "times": {}}},
    }
    model, engine = scripted(*[answer] * 4, "Done.<turn|>", at_once=at_once)
    bound = model.bind_tools([ring])
    whole, chunks = bound.invoke("Go"), streamed(bound)
    for message in (whole, chunks):
        (call,) = message.tool_calls
        assert (call["name"], call["args"]) == ("ring", {"how": "softly", "times": 2})
        assert (message.text, message.invalid_tool_calls) == ("", [])
        assert message.response_metadata["finish_reason"] == "tool_calls"
    other = model.bind_tools([{**ring, "name": "sing"}])
    for message in (other.invoke("Go"), streamed(other)):  # to which it is words, all of them
        assert message.tool_calls == []
        assert message.text.strip().startswith("call:ring")
        assert "softly" in message.text
    result = ToolMessage("It rang.", tool_call_id=whole.tool_calls[0]["id"])
    assert bound.invoke([HumanMessage("Go"), whole, result]).text == "Done."
    before, after = engine.submitted[0]["prompt"], engine.submitted[-1]["prompt"]
    said = [
        token for token in engine.requests[0].progress.context[len(before) :] if token not in engine.served.stop_ids
    ]
    assert list(after[len(before) : len(before) + len(said)]) == said, "its ids are those that it wrote"


def test_arguments_come_in_deltas_and_calls_apart(scripted):
    model, _ = scripted(f"{CALL}{CALL}<|tool_response>")
    parts = [part for chunk in model.stream("Go") for part in chunk.tool_call_chunks]
    for index in (0, 1):
        begin, *deltas = [part for part in parts if part["index"] == index]
        assert begin["name"] == "ring"
        assert begin["id"]
        assert len(deltas) > 5
        assert {(part["name"], part["id"]) for part in deltas} == {(None, None)}
        assert json.loads("".join(part["args"] for part in [begin, *deltas])) == {"how": "softly", "times": 2}


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize(("answer", "name"), BROKEN.values(), ids=list(BROKEN))
def test_a_call_that_breaks_off_is_no_call(answer, name, version, scripted):
    model, _ = scripted(answer, answer, output_version=version)
    whole, chunks = model.invoke("Go"), streamed(model)
    for message in (whole, chunks):
        assert message.tool_calls == []
        assert [call["name"] or None for call in message.invalid_tool_calls] == [name]
    assert whole.invalid_tool_calls[0]["error"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_a_call_that_breaks_off_is_no_call_for_events_either(scripted):
    model, _ = scripted(BROKEN["in a number"][0])
    events = [event async for event in await model.astream_events("Go", version="v3")]
    ends = [event["content"] for event in events if event["event"] == "content-block-finish"]
    assert [block["type"] for block in ends] == ["invalid_tool_call"]


@pytest.mark.parametrize("end", range(1, 38))
def test_no_reader_of_unfinished_json_repairs_it(end):
    text = '{"a": "x\\"y\\\\", "b": [1, {"c": null}]}'[:end]
    broken = text + unrepairable(text)
    with pytest.raises(ValueError, match=r"char \d+"):
        json.loads(broken)
    with contextlib.suppress(ValueError):
        assert not isinstance(parse_partial_json(broken), dict)


@pytest.mark.parametrize("version", [None, "v1"])
def test_what_looks_like_arguments_is_no_call_without_a_name(version, scripted):
    block = '```tool_call\n{"times": 2, "how": "so'
    model, _ = scripted(block, block, dialect="gemma", output_version=version)
    for message in (model.invoke("Go"), streamed(model)):
        assert message.tool_calls == []
        assert len(message.invalid_tool_calls) == 1


def test_a_stop_string_is_not_shown_and_does_not_hide_a_call(scripted):
    model, _ = scripted(f"{CALL}Wait. STOP here", f"{CALL}Wait. STOP here", stop=["STOP"])
    for answer in (model.invoke("Go"), streamed(model)):
        assert answer.text == "Wait. "
        assert len(answer.tool_calls) == 1
        assert answer.response_metadata["stop"] == "STOP"


def test_text_that_could_become_a_stop_string_is_held_back_until_it_is_sure(scripted):
    model, _ = scripted("a STO b<turn|>", stop=["STOP"])
    texts = [chunk.text for chunk in model.stream("Go")]
    assert "".join(texts) == "a STO b"
    assert not any(text.endswith(("S", "ST", "STO")) for text in texts)


def test_usage_and_name_come_once(scripted):
    model, _ = scripted("Hello<turn|>")
    *chunks, last = model.stream("Go")
    assert not any(chunk.usage_metadata or "model_name" in chunk.response_metadata for chunk in chunks)
    assert last.usage_metadata["output_tokens"] == 6
    assert last.response_metadata["model_name"] == "scripted"


@pytest.mark.parametrize("version", [None, "v1"])
def test_words_behind_a_call_stay_apart_from_it(version, scripted):
    # Blocks with one index become one block: words, a call and words again are three.
    block = '```tool_call\n{"name": "ring", "parameters": {"times": 1}}\n```\n'
    model, _ = scripted(f"One.\n{block}Two.<end_of_turn>", dialect="gemma", output_version=version)
    answer = streamed(model, tools=[{"name": "ring", "description": "Rings", "parameters": {}}])
    assert answer.text == "One.Two."
    assert [call["args"] for call in answer.tool_calls] == [{"times": 1}]
    if version:
        assert [block["type"] for block in answer.content] == ["text", "tool_call", "text"]
