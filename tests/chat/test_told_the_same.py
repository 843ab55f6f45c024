"""An answer's facts about itself are the same in every way to ask for it."""

from __future__ import annotations

from functools import reduce
from operator import add

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.messages import HumanMessage, SystemMessage, trim_messages
from pydantic import BaseModel

from langchain_gemma_jax import ChatGemmaJax, Route

CALL = "<|tool_call>call:ring{times:2}<tool_call|><|tool_response>"


class City(BaseModel):
    """A city."""

    name: str


def ring(times: int) -> str:
    """Rings."""
    return "ding" * times


def complete(answer, reason: str, model: str = "scripted") -> None:
    told = answer.response_metadata
    assert (told["model_name"], told["model_provider"]) == (model, "gemma_jax")
    assert told["normalized_finish_reason"] == reason
    usage = answer.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_token_details"]["cache_read"] > 0
    assert "reasoning" in usage["output_token_details"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_every_way_tells_the_same(scripted):
    model, _ = scripted(*["Hello<turn|>"] * 8)
    told = [
        model.invoke("Hi"),
        await model.ainvoke("Hi"),
        reduce(add, model.stream("Hi")),
        reduce(add, [chunk async for chunk in model.astream("Hi")]),
        *model.batch(["Hi"]),
        *await model.abatch(["Hi"]),
    ]
    if hasattr(model, "stream_events"):  # an older LangChain has none
        told += [
            model.stream_events("Hi", version="v3").output,
            await (await model.astream_events("Hi", version="v3")),
        ]
    for answer in told:
        complete(answer, "stop")
        assert answer.text == "Hello"
    assert len({str(answer.usage_metadata) for answer in told}) == 1


@pytest.mark.parametrize(
    ("said", "settings", "reason"),
    [("Hello<turn|>", {}, "stop"), (CALL, {}, "tool_call"), ("Hello", {"max_tokens": 3}, "length")],
)
def test_how_an_answer_ended_in_words_that_all_providers_share(said, settings, reason, scripted):
    model, _ = scripted(said, said, **settings)
    bound = model.bind_tools([ring])
    complete(bound.invoke("Hi"), reason)
    complete(reduce(add, bound.stream("Hi")), reason)


def test_structured_and_escalated_answers_tell_it_too(scripted):
    model, _ = scripted('{"name": "Paris"}<turn|>')
    raw = model.with_structured_output(City, include_raw=True).invoke("Hi")
    assert raw["parsed"] == City(name="Paris")
    complete(raw["raw"], "stop")
    broken = "<|tool_call>call:ring{times:<tool_call|><|tool_response>"
    model, _ = scripted(broken, CALL, model="auto", route=Route(light="small", heavy="large"))
    answer = model.bind_tools([ring]).invoke("Hi")
    complete(answer, "tool_call", model="large")
    assert answer.response_metadata["route"]["size"] == "heavy"


def test_langchains_helpers(scripted):
    model, _ = scripted("Hello<turn|>", "Hello<turn|>")
    with get_usage_metadata_callback() as counted:
        model.invoke("Hi")
        list(model.stream("Hi"))
    assert counted.usage_metadata["scripted"]["output_tokens"] == 12
    told = [SystemMessage("Be brief."), *(HumanMessage("word " * 50) for _ in range(9))]
    kept = trim_messages(told, max_tokens=600, token_counter=model, include_system=True, strategy="last")
    assert kept[0] == told[0]
    assert model.get_num_tokens_from_messages(kept) <= 600 < model.get_num_tokens_from_messages(told)


@pytest.mark.skipif(not hasattr(ChatGemmaJax, "stream_events"), reason="this LangChain has no such events")
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_events_of_the_third_version_say_what_chunks_say(scripted):
    said = "<|channel>thought\nHm.<channel|>Well." + CALL
    model, _ = scripted(said, said, said)
    bound = model.model_copy(update={"output_version": "v1"}).bind_tools([ring])
    chunks = reduce(add, bound.stream("Hi"))
    events = list(bound.stream_events("Hi", version="v3"))
    later = [event async for event in await bound.astream_events("Hi", version="v3")]
    for seen in (events, later):
        finished = [event["content"] for event in seen if event["event"] == "content-block-finish"]
        assert [block["type"] for block in finished] == ["reasoning", "text", "tool_call"]
        assert [block["reasoning"] for block in finished[:1]] == ["Hm."]
        assert finished[1]["text"] == chunks.text == "Well."
        assert finished[2]["args"] == chunks.tool_calls[0]["args"] == {"times": 2}
        deltas = [event["delta"] for event in seen if event["event"] == "content-block-delta"]
        assert "".join(delta.get("text", "") for delta in deltas) == "Well."
        assert seen[-1]["event"] == "message-finish"
        assert seen[-1]["usage"] == chunks.usage_metadata
        assert seen[-1]["metadata"]["normalized_finish_reason"] == "tool_call"
