"""Complaints of users of other local models, and what happens here, a test each. docs/benchmarks.md has the sources."""

from __future__ import annotations

import json
import string
from functools import reduce
from operator import add

import pytest
from jsonschema import Draft202012Validator
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel, Field

from langchain_gemma_jax import ChatGemmaJax, ContextLengthError, InputError, engine
from langchain_gemma_jax.middleware import RepeatedCallMiddleware
from tests.chat.tiny import toward_ends
from tests.dialects.vocabulary import tokenizer
from tests.waiting import until

CALL = '<|tool_call>call:weather{city:<|"|>Rome<|"|>}<tool_call|><|tool_response>'
SCHEMA = {
    "title": "city",
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "kinds": {"type": "array", "items": {"enum": ["old", "new"]}, "maxItems": 2},
    },
    "required": ["name", "size"],
    "additionalProperties": False,
}


def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_calls_that_cannot_be_read_are_never_guessed(scripted):
    broken = '<|tool_call>call:weather{city:<|"|>Rome}<tool_call|><|tool_response>'
    model, _ = scripted(broken, broken)
    bound = model.bind_tools([weather])
    for answer in (bound.invoke("Hi"), reduce(add, bound.stream("Hi"))):
        assert not answer.tool_calls
        assert len(answer.invalid_tool_calls) == 1


def test_the_same_call_again_after_its_result(scripted):
    model, engine = scripted(CALL, CALL, "It rains.<turn|>")
    agent = create_agent(model, [weather], middleware=[RepeatedCallMiddleware()])
    messages = agent.invoke({"messages": [HumanMessage("Weather?")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[-1].text == "It rains."
    assert engine.submitted[2]["sampling"].grammar.banned == ("<|tool_call>",)
    # Allowed once more, it is executed once more.
    model, _ = scripted(CALL, CALL, CALL, "It rains.<turn|>")
    agent = create_agent(model, [weather], middleware=[RepeatedCallMiddleware(allowed=1)])
    messages = agent.invoke({"messages": [HumanMessage("Weather?")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai", "tool", "ai"]
    with pytest.raises(InputError, match="allowed"):
        RepeatedCallMiddleware(allowed=-1)


async def test_a_new_call_beside_a_repeated_one_is_made(scripted):
    other = CALL.replace("Rome", "Oslo").removesuffix("<|tool_response>")
    model, _ = scripted(CALL, other + CALL, "It rains.<turn|>")
    agent = create_agent(model, [weather], middleware=[RepeatedCallMiddleware()])
    messages = (await agent.ainvoke({"messages": [HumanMessage("Weather?")]}))["messages"]
    assert [call["args"]["city"] for message in messages for call in getattr(message, "tool_calls", [])] == [
        "Rome",
        "Oslo",
    ]


@pytest.mark.parametrize("at_once", [1, 2, 7, 99])
def test_a_call_is_never_content_however_it_is_cut_into_pieces(at_once, scripted):
    model, _ = scripted(CALL, CALL, at_once=at_once)
    bound = model.bind_tools([weather])
    chunks = list(bound.stream("Hi"))
    assert not any(chunk.text for chunk in chunks)
    assert any(chunk.tool_call_chunks for chunk in chunks)
    for answer in (bound.invoke("Hi"), reduce(add, chunks)):
        assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("weather", {"city": "Rome"})]
        assert answer.text == ""


@pytest.mark.long
def test_objects_are_valid_whatever_the_model_is_like(whole_of):
    model = whole_of(temperature=1.0).with_structured_output(SCHEMA)
    for seed in range(8):
        Draft202012Validator(SCHEMA).validate(model.invoke("HELLO", config={"tags": [str(seed)]}))


@pytest.mark.long
@pytest.mark.parametrize("thinking", [False, True])
def test_a_schema_holds_with_thoughts_and_without_and_beside_tools(thinking, whole_of):
    model = whole_of(temperature=1.0, thinking=thinking)
    end = engine().load(model.model).model.tokenizer.control_id("<channel|>")
    model = model.model_copy(update={"logit_bias": toward_ends("gemma4") | {end: 30.0}})  # thoughts end, too
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}
    for seed in range(4):
        answer = model.bind_tools([], response_format=form).invoke("HELLO", seed=seed)
        Draft202012Validator(SCHEMA).validate(json.loads(answer.text))
        both = model.bind_tools([weather], response_format=form).invoke("HELLO", seed=seed)
        assert not both.invalid_tool_calls
        if not both.tool_calls:
            Draft202012Validator(SCHEMA).validate(json.loads(both.text))


async def test_nothing_is_cut_off_a_prompt_in_silence(chat_of):
    model = chat_of()
    for _ in range(2):  # the same error each time, in every way of asking
        with pytest.raises(ContextLengthError):
            model.invoke("A" * 5000)
        with pytest.raises(ContextLengthError):
            list(model.stream("A" * 5000))
        with pytest.raises(ContextLengthError):
            await model.ainvoke("A" * 5000)


def test_the_context_is_the_models_own_where_none_is_said(chat_of):
    model = chat_of()
    assert engine().load(model.model).max_context == 2048 == model.profile["max_input_tokens"] + 1
    assert ChatGemmaJax(model="google/gemma-3-4b-it").profile["max_input_tokens"] == 131071


@pytest.mark.long
def test_after_a_tool_call_only_the_result_is_read(whole_of):
    model = whole_of().bind_tools([weather], tool_choice="any")
    asked = [HumanMessage("HELLO " * 60)]
    answer = model.invoke(asked)
    results = [ToolMessage("rain", tool_call_id=call["id"]) for call in answer.tool_calls]
    later = model.invoke([*asked, answer, *results])
    read = later.usage_metadata["input_tokens"] - later.usage_metadata["input_token_details"]["cache_read"]
    assert read < 60 + 40 * len(results) < later.usage_metadata["input_tokens"]


def test_a_long_conversation_takes_the_memory_of_one(chat_of):
    model, taken, history = chat_of(), [], []
    for turn in range(6):
        history += [HumanMessage(f"TURN {turn}")]
        history += [model.invoke(history, max_tokens=4)]
        taken.append(sum(status.nbytes for status in engine().models()))
    assert max(taken) < 1.01 * taken[0]


@pytest.mark.long
def test_an_answer_is_the_same_after_the_model_has_left_and_come_back(chat_of):
    model = chat_of(max_tokens=8)
    first = model.invoke("HELLO AGAIN")
    served = engine().load(model.model)
    engine().evict(served)
    until(lambda: not engine().status(model.model).resident)
    assert model.invoke("HELLO AGAIN").content == first.content


@pytest.mark.long
def test_answers_at_once_are_those_of_each_alone(chat_of):
    model = chat_of(max_tokens=12)
    asked = [f"{letter * 3} {number}" for number, letter in enumerate(string.ascii_uppercase[:12])]
    alone = [model.invoke(text).content for text in asked]
    for _ in range(2):
        assert [answer.content for answer in model.batch(asked)] == alone


def test_packed_weights_take_so_much_less(running):
    taken = {}
    for kind in (None, "int8", "int4"):
        served = running.load("sprout-s", weights=kind)
        taken[kind] = running.status("sprout-s", weights=kind).weights
        running.unload(served)
    assert taken["int8"] < 0.6 * taken[None]  # of two bytes a weight: one, and a scale for each block
    assert taken["int4"] < 0.4 * taken[None]  # all but the embeddings, which are int8


def test_thoughts_are_asked_for_however_many_tools_there_are(scripted):
    model, told = scripted("Hello", thinking=True)
    tools = [{"name": f"tool_{n}", "description": "x" * 80, "parameters": {}} for n in range(20)]
    model.bind_tools(tools).invoke("Hi")
    prompt = tokenizer().decode(told.submitted[0]["prompt"], keep_control=True)
    assert "<|think|>" in prompt
    assert prompt.count("declaration:tool_") == 20


def test_an_image_in_a_tools_result_is_an_error_and_not_left_out(scripted):
    model, _ = scripted()
    image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "1"}])
    result = ToolMessage([{"type": "text", "text": "a map"}, image], tool_call_id="1")
    with pytest.raises(InputError, match=r"messages\[2\].content\[1\]: .* reads text alone"):
        model.invoke([HumanMessage("Hi"), call, result])


def test_a_result_of_several_blocks_is_read_whole(scripted):
    model, told = scripted("Hello")
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "1"}])
    blocks = [{"type": "text", "text": f"part {n}"} for n in range(3)]
    model.invoke([HumanMessage("Hi"), call, ToolMessage(blocks, tool_call_id="1")])
    assert "part 0\npart 1\npart 2" in tokenizer().decode(told.submitted[0]["prompt"])


def test_a_hundred_and_twenty_eight_tools_at_once(scripted):
    model, _ = scripted("<|tool_call>call:tool_77{x:5}<tool_call|><|tool_response>", max_context=60000)
    model = model.model_copy(update={"max_context": None})
    tools = [
        {"name": f"tool_{n}", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
        for n in range(128)
    ]
    assert len(model.bind_tools(tools).kwargs["tools"]) == 128
    with pytest.raises(ContextLengthError):  # of the tiny context of this model, and nothing is left out
        model.bind_tools(tools).invoke("Hi")


def test_a_result_of_sixty_kilobytes_is_read_or_refused_and_never_cut(scripted):
    model, _ = scripted()
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "1"}])
    with pytest.raises(ContextLengthError) as caught:
        model.invoke([HumanMessage("Hi"), call, ToolMessage("word " * 12_000, tool_call_id="1")])
    assert caught.value.tokens > 12_000


def test_tools_may_be_called_whatever_is_legal(whole_of):
    names = [string.ascii_letters, string.digits + "_-", "a.b/c:d", "get-weather_v2.1"]
    tools = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in names]
    for dialect in ("gemma", "function_gemma", "gemma4"):
        for name in names:
            answer = whole_of(dialect).bind_tools(tools, tool_choice=name).invoke("HELLO", parallel_tool_calls=False)
            assert [(call["name"], call["args"]) for call in answer.tool_calls] == [(name, {})]


class Leaf(BaseModel):
    """A leaf."""

    size: int = Field(ge=0, le=9)


def test_references_are_followed_however_deep(whole_of):
    definitions = {f"n{depth}": {"$ref": f"#/$defs/n{depth + 1}"} for depth in range(30)}
    definitions["n30"] = {"type": "object", "properties": {"leaf": {"$ref": "#/$defs/leaf"}}, "required": ["leaf"]}
    definitions["leaf"] = Leaf.model_json_schema()
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n0"}},
        "required": ["a"],
        "$defs": definitions,
        "title": "deep",
    }
    answer = whole_of().bind_tools([schema], tool_choice="any").invoke("HELLO", parallel_tool_calls=False)
    Draft202012Validator(schema).validate(answer.tool_calls[0]["args"])
