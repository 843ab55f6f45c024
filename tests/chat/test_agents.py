"""LangChain's agents and LangGraph's streams, on a model that knows nothing and is held to its tools."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from jsonschema import Draft202012Validator
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax
from langchain_gemma_jax.engine.api import process
from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.models.tokenizer import load_tokenizer
from tests.chat.tiny import tiny_folder, toward_ends
from tests.engine.tiny import settle


@tool
def weather(city: str, days: int) -> str:
    """The weather in a city."""
    return f"{city}: rain for {days} days"


@tool
def convert(amount: float, currency: str) -> dict:
    """Converts money."""
    return {"amount": amount / 2, "currency": currency}


@tool
def search(query: str, limit: int = 3) -> list:
    """Searches."""
    return [query] * min(limit, 3)


@tool
def remind(text: str, at: str, loud: bool) -> str:  # noqa: FBT001  a tool's arguments are named
    """Sets an alarm."""
    return "done"


@tool
def roll(sides: int) -> int:
    """Rolls a die."""
    return 4


@tool
def now() -> str:
    """The time."""
    return "12:00"


TOOLS = [weather, convert, search, remind, roll, now]
SCHEMAS = {each.name: each.tool_call_schema.model_json_schema() for each in TOOLS}
TABLES = 2048, 4096  # tokens that a table of pages reaches


class Report(BaseModel):
    """What came of it."""

    title: str = Field(max_length=12)
    score: int = Field(ge=0, le=10)


@wrap_model_call
async def acall_once(request, handler):
    """Two calls of a tool, then words: a model that knows nothing would never end."""
    choice = _choice(request.messages)
    words = {} if choice == "any" else {"logit_bias": {}}  # which need not end as calls do
    return await handler(request.override(tool_choice=choice, model_settings=words))


@wrap_model_call
def call_once(request, handler):
    """The same."""
    return handler(request.override(tool_choice=_choice(request.messages)))


def _choice(messages) -> str:
    asked = max(number for number, message in enumerate(messages) if isinstance(message, HumanMessage))
    return "any" if sum(isinstance(message, ToolMessage) for message in messages[asked:]) < 2 else "none"


@pytest.fixture
def several_buckets(tmp_path, monkeypatch, running):
    """A model with room for ten turns, in an engine in which a conversation outgrows its bucket."""
    folder = tiny_folder(tmp_path / "model", context=4096)
    # A stray mark of a thought among random tokens would make words of this turn thoughts, which the next one drops.
    control = load_tokenizer(folder).control_id
    bias = toward_ends("gemma4", of_turns=False) | dict.fromkeys(map(control, ("<|channel>", "<channel|>")), -100)
    ladders = Ladders(chunks=(16,), capacities=TABLES, rows=(1,))
    engine = Engine(Settings(ladders=ladders, drafts=False, guards="raise"))
    monkeypatch.setattr(process, "_engine", engine)
    yield (
        engine,
        ChatGemmaJax(model=str(folder), temperature=1.0, max_tokens=90, parallel_tool_calls=False, logit_bias=bias),
    )
    assert engine.close(30)


@pytest.mark.long
def test_ten_turns_with_six_tools(several_buckets):
    engine, model = several_buckets
    agent = create_agent(model, TOOLS, middleware=[call_once], system_prompt="BE BRIEF.")
    messages, compiled, buckets = [], [], []
    for turn in range(10):
        before, shown = engine.report(), len(messages)
        messages = agent.invoke({"messages": [*messages, HumanMessage(f"ASK {turn}")]})["messages"]
        settle(engine)  # what this turn had made for later ones is its own
        compiled.append(engine.report().compiles - before.compiles)
        answers = [message for message in messages[shown:] if isinstance(message, AIMessage)]
        pages = [answer.response_metadata["timings"]["bucket"] for answer in answers]
        buckets.append([min(table for table in TABLES if table >= each) for each in pages])
        calls = [call for answer in answers for call in answer.tool_calls]
        assert len(calls) == 2
        assert not any(answer.invalid_tool_calls for answer in answers)
        for call in calls:
            Draft202012Validator(SCHEMAS[call["name"]]).validate(call["args"])
    for earlier, later in pairwise(message for message in messages if isinstance(message, AIMessage)):
        # All that was ever in the cache is taken from there. Not in it: the last token, and before it those to which
        # there was no alternative.
        known = earlier.usage_metadata["total_tokens"]
        reused = later.usage_metadata["input_token_details"]["cache_read"]
        assert known - 1 - earlier.response_metadata["timings"]["forced_tokens"] <= reused <= known
    assert set().union(*buckets) == set(TABLES)
    known = set()
    told = [answer.response_metadata["timings"]["compiled"] for answer in messages if isinstance(answer, AIMessage)]
    assert 0 < sum(told) <= sum(compiled)
    for turn, seen in enumerate(buckets):
        assert compiled[turn] == 0 or not known.issuperset(seen), (turn, compiled, buckets)
        # A turn that only ended in a bucket may have done so at its last word: the next one is the first to read there.
        known.add(seen[0])


async def test_messages_are_streamed_token_by_token(whole_of):
    bias = toward_ends("gemma4", of_turns=False)
    model = whole_of(temperature=1.0, parallel_tool_calls=False, max_tokens=90, logit_bias=bias)
    agent = create_agent(model, TOOLS, middleware=[acall_once])
    found = {}
    async for chunk, metadata in agent.astream({"messages": [HumanMessage("HELLO")]}, stream_mode="messages"):
        if isinstance(chunk, AIMessageChunk):
            assert metadata["langgraph_node"] == "model"
            known = found.get(chunk.id)
            found[chunk.id] = (chunk, 1) if known is None else (known[0] + chunk, known[1] + 1)
    assert len(found) == 3
    for number, (message, chunks) in enumerate(found.values()):
        assert chunks > 1
        assert bool(message.tool_calls) == (number < 2)
        assert message.usage_metadata["output_tokens"] > 3


async def test_events_are_streamed(whole_of):
    model = whole_of(temperature=1.0).bind_tools(TOOLS, tool_choice="any")
    seen = [event async for event in model.astream_events("HELLO", version="v2")]
    names = [event["event"] for event in seen]
    assert names[0] == "on_chat_model_start"
    assert names[-1] == "on_chat_model_end"
    assert names.count("on_chat_model_stream") > 2
    whole = seen[-1]["data"]["output"]
    streamed = sum((event["data"]["chunk"] for event in seen[2:-1]), seen[1]["data"]["chunk"])
    assert [call["args"] for call in streamed.tool_calls] == [call["args"] for call in whole.tool_calls]


@pytest.mark.parametrize("strategy", [ProviderStrategy, ToolStrategy, lambda schema: schema])
def test_agents_answer_in_a_schema(strategy, whole_of):
    model = whole_of(temperature=1.0, parallel_tool_calls=False)
    made = create_agent(model, [], response_format=strategy(Report)).invoke({"messages": [HumanMessage("HELLO")]})
    assert isinstance(made["structured_response"], Report)


def test_agents_take_the_strategy_of_the_provider_by_themselves(whole_of):
    made = create_agent(whole_of(temperature=1.0), [], response_format=Report)
    messages = made.invoke({"messages": [HumanMessage("HELLO")]})["messages"]
    assert len(messages) == 2
    Report(**json.loads(messages[-1].text))


def test_an_agent_with_tools_and_a_schema(whole_of):
    model = whole_of(temperature=1.0, parallel_tool_calls=False, seed=5)
    agent = create_agent(model, TOOLS, response_format=ProviderStrategy(Report))
    made = agent.invoke({"messages": [HumanMessage("HELLO")]})
    assert isinstance(made["structured_response"], Report)
