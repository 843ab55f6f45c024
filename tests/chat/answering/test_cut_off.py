"""Answers that break off: what the model did not finish is never handed out as a call or as an object."""

from __future__ import annotations

import copy
import json
import pickle
import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain.agents.structured_output import ProviderStrategy, StructuredOutputValidationError, ToolStrategy
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from pydantic import BaseModel

from langchain_gemma_jax import ContextLengthError, CutOffError, DeadlineError, GemmaJaxError, SchemaError
from langchain_gemma_jax.engine.requests.request import Request
from tests.chat.tiny import toward_ends
from tests.dialects.schemas import Schemas
from tests.dialects.vocabulary import tokenizer

DIALECTS = ("gemma", "function_gemma", "gemma4")
METHODS = ("json_schema", "function_calling", "json_mode")
FORMS = [(None, "gemma"), ("v1", "function_gemma"), (None, "gemma4"), ("v1", "gemma4")]
EVERY_WAY = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")


class Town(BaseModel):
    """A town."""

    name: str
    inhabitants: int


@pytest.fixture
def ran(monkeypatch):
    return []


@pytest.fixture
def transfer(ran):
    @tool
    def transfer(amount: int, to: str) -> str:
        """Transfers money."""
        ran.append((amount, to))
        return "done"

    return transfer


async def answered(way, model, asked="HELLO", **given):
    """Return a model's answer, in any of the ways to ask it."""
    match way:
        case "invoke":
            return model.invoke(asked, **given)
        case "ainvoke":
            return await model.ainvoke(asked, **given)
        case "stream":
            first, *rest = model.stream(asked, **given)
            return sum(rest, first) if isinstance(first, AIMessage) else (rest or [first])[-1]
        case "astream":
            first, *rest = [chunk async for chunk in model.astream(asked, **given)]
            return sum(rest, first) if isinstance(first, AIMessage) else (rest or [first])[-1]
        case "batch":
            return model.batch([asked, asked], **given)[1]
        case _:
            return (await model.abatch([asked, asked], **given))[1]


# Calls


@pytest.mark.long
@pytest.mark.parametrize(
    ("version", "dialect"), [(None, "gemma"), ("v1", "function_gemma"), (None, "gemma4"), ("v1", "gemma4")]
)
@pytest.mark.parametrize("way", EVERY_WAY)
async def test_a_call_that_was_cut_off_is_invalid_in_every_way(way, dialect, version, chat_of, transfer):
    model = chat_of(dialect, output_version=version, max_tokens=70, temperature=1.0, seed=1)
    answer = await answered(way, model.bind_tools([transfer], tool_choice="any"))
    assert answer.tool_calls == []
    (call,) = answer.invalid_tool_calls
    assert call["name"] == "transfer"
    told = answer.response_metadata
    assert told["finish_reason"] == "length"
    assert told["cut_off"].startswith("max_tokens=70 were used up. Allow more")
    assert "tool_call" not in [block["type"] for block in answer.content_blocks]
    if "stream" not in way:  # LangChain keeps no errors of calls that come in chunks
        assert call["error"] == f"The call was cut off, and is not to be executed: {told['cut_off']}"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("version", ["v2", "v3"])
async def test_for_events_too(version, chat_of, transfer):
    bound = chat_of(max_tokens=40, temperature=1.0, seed=1).bind_tools([transfer], tool_choice="any")
    events = bound.astream_events("HELLO", version=version)
    if version == "v3":
        ends = [event["content"] async for event in await events if event["event"] == "content-block-finish"]
        assert [block["type"] for block in ends] == ["invalid_tool_call"]
    else:
        *_, last = [event["data"].get("output") async for event in events]
        assert (last.tool_calls, len(last.invalid_tool_calls)) == ([], 1)


@pytest.mark.long
async def test_what_else_cuts_off_is_told(chat_of, scripted, transfer):
    bound = chat_of(max_context=512, max_tokens=None, temperature=1.0).bind_tools([transfer], tool_choice="any")
    answer = bound.invoke("HELLO", seed=1)
    usage = answer.usage_metadata
    assert (usage["total_tokens"], answer.tool_calls) == (512, [])
    (call,) = answer.invalid_tool_calls
    assert f"the context was full behind {usage['output_tokens']} tokens. Shorten" in call["error"]
    for dialect, said in (("gemma4", "<|tool_call>call:ring{a:2 STOP"), ("gemma", '```tool_call\n{"name": "ri STOP')):
        answer = scripted(said, dialect=dialect, stop=["STOP"])[0].invoke("HELLO")
        (call,) = answer.invalid_tool_calls
        assert "the stop string 'STOP' ended it" in call["error"]
        assert answer.response_metadata["cut_off"] in call["error"]


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_of_which_nothing_was_written_is_one_too(dialect, chat_of, transfer):
    """As much as its opener: something was begun, and not done."""
    model = chat_of(dialect, max_tokens=1).bind_tools([transfer], tool_choice="any")
    for most in range(1, 30):
        answer = model.invoke("HELLO", max_tokens=most)
        assert answer.tool_calls == []
        assert answer.response_metadata["finish_reason"] == "length"
        opened = dialect != "gemma" or most >= len("```tool_call\n")
        assert len(answer.invalid_tool_calls) == opened


@pytest.mark.long
def test_brackets_that_have_to_come_are_the_models(whole_of):
    def switch(on: bool) -> str:  # noqa: FBT001  a tool's arguments are named
        """Switches it."""
        return f"{on}"

    found = set()
    for dialect in DIALECTS:
        bound = whole_of(dialect, parallel_tool_calls=False).bind_tools([switch], tool_choice="any")
        whole = bound.invoke("HELLO")
        (call,) = whole.tool_calls
        cut = [bound.invoke("HELLO", max_tokens=most) for most in range(1, whole.usage_metadata["output_tokens"] + 1)]
        assert all(answer.tool_calls or answer.response_metadata["finish_reason"] == "length" for answer in cut)
        good = [answer for answer in cut if answer.tool_calls]
        assert {(answer.tool_calls[0]["args"]["on"], answer.text) for answer in good} == {(call["args"]["on"], "")}
        assert all(answer.response_metadata["finish_reason"] == "tool_calls" for answer in good)
        assert not any("cut_off" in answer.response_metadata for answer in good)
        assert 3 < len(good) < len(cut)
        found |= {answer.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"] for answer in good}
    assert found == {True}


async def heard_of(way, model, chunks):
    if way == "stream":
        chunks.extend(model.stream("HELLO"))
    else:
        async for chunk in model.astream("HELLO"):
            chunks.append(chunk)


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("version", [None, "v1"])
async def test_a_stream_that_ends_with_an_error_leaves_no_call(way, version, scripted, monkeypatch):
    monkeypatch.setattr(Request, "completion", lambda *_: DeadlineError("Its time was up."))
    for said, invalid in (("<|tool_call>call:ring{times:2", 1), ("<|tool_call>call:ring{times:2}<tool_call|>Words", 0)):
        model, chunks = scripted(said, output_version=version)[0], []
        with pytest.raises(DeadlineError):
            await heard_of(way, model, chunks)
        heard = sum(chunks[1:], chunks[0])
        assert len(heard.invalid_tool_calls) == invalid
        assert len(heard.tool_calls) == 1 - invalid


# Objects


@pytest.mark.long
@pytest.mark.parametrize("way", EVERY_WAY)
@pytest.mark.parametrize("method", METHODS)
async def test_an_object_that_was_cut_off_is_an_error_and_with_its_message_a_told_one(way, method, chat_of):
    model = chat_of(max_tokens=30, temperature=1.0, seed=1)
    with pytest.raises(CutOffError, match=r"cut off: max_tokens=30 were used up\. Allow more") as caught:
        await answered(way, model.with_structured_output(Town, method=method))
    assert isinstance(caught.value, OutputParserException)
    assert isinstance(caught.value, GemmaJaxError)
    assert "inhabitants" in caught.value.llm_output or "name" in caught.value.llm_output
    told = model.with_structured_output(Town, method=method, include_raw=True)
    found = await answered(way, told)
    assert isinstance(found["raw"], AIMessage)
    assert found["parsed"] is None
    assert isinstance(found["parsing_error"], CutOffError)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_of_any_number_of_tokens_it_is_the_whole_object_or_an_error(method, whole_of):
    numbers = {"title": "n", "description": "n", "type": "object", "properties": {"n": {"type": "integer"}}}
    numbers |= {"required": ["n"]}
    kinds: list = [Town, numbers]
    if method != "function_calling":
        kinds.append({"type": "integer", "minimum": 10})
    for schema in kinds:
        asked = whole_of(temperature=1.0, seed=3).with_structured_output(schema, method=method)
        whole, seen = asked.invoke("HELLO"), []
        for most in range(1, 60):
            try:
                found = asked.invoke("HELLO", max_tokens=most)
            except CutOffError:
                seen.append("cut off")
            else:
                assert found == whole
                seen.append("whole")
        assert seen == sorted(seen)
        assert set(seen) == {"cut off", "whole"}


def test_partial_objects_are_streamed_and_then_the_error_comes(chat_of):
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 99}}, "required": ["a"]}
    asked, seen = chat_of(max_tokens=40, temperature=1.0, seed=1).with_structured_output(schema), []
    with pytest.raises(CutOffError):
        seen.extend(asked.stream("HELLO"))  # which takes what comes before the error
    assert len(seen) > 3
    assert all(found.keys() <= {"a"} for found in seen)


def tiny_control(model, name):
    from langchain_gemma_jax import engine

    return engine().load(model.model).model.tokenizer.control_id(name)


def test_the_error_can_be_copied_and_sent():
    error = CutOffError("max_tokens=3 were used up.", '{"na')
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is CutOffError
        assert (str(again), again.reason, again.llm_output) == (str(error), error.reason, error.llm_output)


# Agents


@wrap_model_call
def insist(request, handler):
    """A model that knows nothing would call nothing."""
    return handler(request.override(tool_choice="any"))


@wrap_model_call
async def ainsist(request, handler):
    """The same."""
    return await handler(request.override(tool_choice="any"))


@pytest.mark.long
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_agent_does_not_execute_it_and_can_go_on(dialect, chat_of, transfer, ran):
    model = chat_of(dialect, max_tokens=80, temperature=1.0, seed=1)
    asked = {"messages": [HumanMessage("SEND MONEY")]}
    for state in (
        create_agent(model, [transfer], middleware=[insist]).invoke(asked),
        await create_agent(model, [transfer], middleware=[ainsist]).ainvoke(asked),
    ):
        assert ran == []
        assert len(state["messages"][-1].invalid_tool_calls) == 1
        told = [*state["messages"], HumanMessage("ONCE MORE")]
        again = create_agent(model, [transfer]).invoke({"messages": told})  # which adds an error behind the call
        assert isinstance(again["messages"][-1], AIMessage)
        assert len(again["messages"]) > len(told)


@pytest.mark.long
def test_neither_strategy_of_an_agent_makes_an_object_of_it(chat_of, transfer, ran):
    model = chat_of(max_tokens=60, temperature=1.0, seed=1, parallel_tool_calls=False)
    asked = {"messages": [HumanMessage("HELLO")]}
    with pytest.raises(StructuredOutputValidationError, match="Town"):
        create_agent(model, [], response_format=ProviderStrategy(Town)).invoke(asked)
    state = create_agent(model, [transfer], response_format=ToolStrategy(Town)).invoke(asked)
    assert (state.get("structured_response"), ran) == (None, [])
    assert state["messages"][-1].invalid_tool_calls
    with pytest.raises(GraphRecursionError):  # without tools of its own, an agent asks until it gets one
        create_agent(model, [], response_format=ToolStrategy(Town)).invoke(asked, {"recursion_limit": 4})


# What is remembered


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("streamed", [False, True])
def test_the_next_turn_reads_it_as_words(dialect, streamed, scripted):
    said = {"gemma": '```tool_call\n{"name": "ring", "parameters": {"times": 12'}
    said |= {"function_gemma": "<start_function_call>call:ring{times:12", "gemma4": "<|tool_call>call:ring{times:12"}
    model, engine = scripted(said[dialect], "Done", "Done", dialect=dialect)
    if streamed:
        first, *rest = model.stream("Ring")
        answer = sum(rest, first)
    else:
        answer = model.invoke("Ring")
    error = ToolMessage("It could not be executed.", tool_call_id=answer.invalid_tool_calls[0]["id"], status="error")
    model.invoke([HumanMessage("Ring"), answer, error, HumanMessage("Well?")])
    read = tokenizer().decode(engine.submitted[1]["prompt"], keep_control=True)
    opener = said[dialect].partition("call:")[0] if dialect != "gemma" else "```tool_call"
    assert opener not in read
    assert "times" in read
    assert read.index("times") < read.index("It could not be executed.") < read.index("Well?")
    assert streamed or "12" in read  # a number is not told before it is complete


def test_behind_a_good_call_the_error_is_its_result(scripted):
    good = "<|tool_call>call:ring{times:1}<tool_call|>"
    model, engine = scripted(f"{good}<|tool_call>call:ring{{times:2", "Done")
    answer = model.invoke("Ring")
    (call,), (ruin,) = answer.tool_calls, answer.invalid_tool_calls
    results = [
        ToolMessage("It could not be executed.", name="ring", tool_call_id=ruin["id"], status="error"),
        ToolMessage("ding", tool_call_id=call["id"]),
    ]
    model.invoke([HumanMessage("Ring"), answer, *results])
    read = tokenizer().decode(engine.submitted[1]["prompt"], keep_control=True)
    assert read.count("<|tool_call>") == 1
    assert "It could not be executed." in read
    assert "ding" in read


def test_a_turn_that_was_cut_off_behind_a_whole_call_is_known_again(chat_of):
    """The appended part belongs to the answer, and is not in the cache."""

    def switch(on: bool) -> str:  # noqa: FBT001  a tool's arguments are named
        """Switches it."""
        return f"{on}"

    bound = chat_of(temperature=1.0, seed=1).bind_tools([switch], tool_choice="any")
    answers = [bound.invoke("HELLO", max_tokens=most) for most in range(20, 45)]
    one = next(answer for answer in answers if answer.tool_calls)
    assert (len(one.tool_calls), one.invalid_tool_calls) == (1, [])
    assert one.response_metadata["finish_reason"] == "length"
    assert "cut_off" not in one.response_metadata
    told = [HumanMessage("HELLO"), one, ToolMessage("done", tool_call_id=one.tool_calls[0]["id"])]
    again = bound.invoke(told, max_tokens=40).usage_metadata["input_token_details"]["cache_read"]
    assert one.usage_metadata["input_tokens"] < again <= one.usage_metadata["total_tokens"]


# Many


def one_case(number, whole_of):
    """A turn that was cut off, beside the whole. Gives how many calls were handed out, and whether one was not.

    None: it cannot be asked for.
    """
    rng = random.Random(number)
    dialect = DIALECTS[number % 3]
    how = {"temperature": rng.choice([0.0, 0.8, 1.5]), "seed": number, "parallel_tool_calls": rng.random() < 0.5}
    bias = toward_ends(dialect, of_turns=rng.random() < 0.5)
    tools = [{"name": name, "description": "", "parameters": Schemas(rng).parameters()} for name in ("ring", "sing")]
    choice = rng.choice(["any", "any", "auto"])
    try:
        bound = whole_of(dialect, logit_bias=bias, **how).bind_tools(tools, tool_choice=choice)
        text = "".join(rng.choices("ABC DEF, ß日", k=rng.randint(1, 30)))
        whole = bound.invoke(text, max_tokens=400)
    except (SchemaError, ContextLengthError):  # no value fits, or the tools are too long for this model
        return None
    expected = [(call["name"], json.dumps(call["args"])) for call in whole.tool_calls]
    most = rng.randint(1, 60)
    first, *rest = bound.stream(text, max_tokens=most)
    for cut in (bound.invoke(text, max_tokens=most), sum(rest, first)):
        found = [(call["name"], json.dumps(call["args"])) for call in cut.tool_calls]
        assert found == expected[: len(found)], (number, most)
        if cut.response_metadata["finish_reason"] != "length":
            assert (found, cut.invalid_tool_calls) == (expected, []), (number, most)
    return len(found), bool(cut.invalid_tool_calls)


MANY = [pytest.param(range(first, first + 140), marks=pytest.mark.slow) for first in range(18, 578, 140)]


def cases(numbers, whole_of):
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda number: one_case(number, whole_of), numbers)
        return [each for each in found if each is not None]


@pytest.mark.long
@pytest.mark.parametrize("numbers", [range(18), *MANY], ids=str)
@pytest.mark.timeout(3600)
def test_every_call_that_is_handed_out_is_one_of_the_unlimited_run(numbers, whole_of):
    found = cases(numbers, whole_of)
    assert len(found) > 0.85 * len(numbers)
    assert sum(count for count, _ in found) > len(found) / 5
    assert sum(cut for _, cut in found) > len(found) / 5
