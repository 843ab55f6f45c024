"""The official clients of OpenAI and Anthropic, and LangChain's models of both, against our server."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from pydantic import BaseModel

pytestmark = pytest.mark.slow

HELLO = [{"role": "user", "content": "Hi"}]
PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
RING = {"type": "function", "function": {"name": "ring", "description": "Rings", "parameters": PARAMETERS}}
FLAT = {"type": "function", "name": "ring", "description": "Rings", "parameters": PARAMETERS, "strict": True}
THEIRS = {"name": "ring", "description": "Rings", "input_schema": PARAMETERS}
CALL = "<|tool_call>call:ring{n:3}<tool_call|><|tool_response>"
OBJECT = '{"n":3}<turn|>'
BROKEN = "<|tool_call>call:ring{n:3"


class Ring(BaseModel):
    """A ring."""

    n: int


@pytest.fixture
def openai(at):
    module = pytest.importorskip("openai")
    with module.OpenAI(base_url=f"{at}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic(at):
    module = pytest.importorskip("anthropic")
    with module.Anthropic(base_url=at, api_key="none", max_retries=0) as client:
        yield client


def test_openais_chat_completions(openai, says):
    import openai as module

    says("Hello<turn|>", "Hello<turn|>", CALL, OBJECT, CALL, BROKEN)
    ask = openai.chat.completions.create
    whole = ask(model="scripted", messages=HELLO, logprobs=True, top_logprobs=2)
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Hello", "stop")
    assert whole.usage.prompt_tokens_details.cached_tokens > 0
    chunks = list(ask(model="scripted", messages=HELLO, stream=True, stream_options={"include_usage": True}))
    assert "".join(each.choices[0].delta.content or "" for each in chunks if each.choices) == "Hello"
    assert chunks[-1].usage.completion_tokens > 0
    (call,) = ask(model="scripted", messages=HELLO, tools=[RING], tool_choice="required").choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"n": 3}
    parsed = openai.chat.completions.parse(model="scripted", messages=HELLO, response_format=Ring)
    assert parsed.choices[0].message.parsed == Ring(n=3)
    with openai.chat.completions.stream(model="scripted", messages=HELLO, tools=[RING]) as stream:
        for _ in stream:
            pass
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("ring", {"n": 3})
    (call,) = ask(model="scripted", messages=HELLO, tools=[RING]).choices[0].message.tool_calls
    with pytest.raises(ValueError, match="line 1"):
        json.loads(call.function.arguments)
    with pytest.raises(module.BadRequestError) as caught:
        ask(model="scripted", messages=[{"role": "user", "content": "x" * 9000}])
    assert caught.value.code == "context_length_exceeded"
    assert [each.id for each in openai.models.list()] == ["sprout-s"]


def test_openais_responses(openai, says):
    says("Hello<turn|>", "Hello<turn|>", CALL, OBJECT, "<|channel>thought\nHm<channel|>Hello<turn|>")
    ask = openai.responses.create
    assert ask(model="scripted", input="Hi", instructions="Be brief.").output_text == "Hello"
    with openai.responses.stream(model="scripted", input="Hi") as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_response().output_text == "Hello"
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    (call,) = ask(model="scripted", input="Hi", tools=[FLAT], tool_choice="required").output
    assert (call.type, json.loads(call.arguments)) == ("function_call", {"n": 3})
    assert openai.responses.parse(model="scripted", input="Hi", text_format=Ring).output_parsed == Ring(n=3)
    thought, answer = ask(model="scripted", input="Hi", reasoning={"effort": "high"}).output
    assert (thought.type, answer.type) == ("reasoning", "message")


def test_anthropics_messages(anthropic, says):
    import anthropic as module

    says("Hello<turn|>", "Hello<turn|>", CALL, CALL, BROKEN)
    ask = anthropic.messages.create
    whole = ask(model="scripted", max_tokens=50, messages=HELLO, system="Be brief.")
    assert (whole.content[0].text, whole.stop_reason) == ("Hello", "end_turn")
    with anthropic.messages.stream(model="scripted", max_tokens=50, messages=HELLO) as stream:
        assert "".join(stream.text_stream) == "Hello"
        assert stream.get_final_message().usage.output_tokens > 0
    given = {"model": "scripted", "max_tokens": 50, "messages": HELLO, "tools": [THEIRS]}
    (call,) = ask(**given, tool_choice={"type": "tool", "name": "ring"}).content
    assert (call.type, call.input) == ("tool_use", {"n": 3})
    with anthropic.messages.stream(**given) as stream:
        (call,) = stream.get_final_message().content
    assert (call.name, call.input) == ("ring", {"n": 3})
    with anthropic.messages.stream(**given) as stream:
        (words,) = stream.get_final_message().content
    assert words.type == "text"
    with pytest.raises(module.BadRequestError, match="too many"):
        ask(model="scripted", max_tokens=5, messages=[{"role": "user", "content": "x" * 9000}])
    assert anthropic.messages.count_tokens(model="scripted", messages=HELLO).input_tokens > 1


@pytest.mark.parametrize("kind", ["openai", "responses", "anthropic"])
@pytest.mark.filterwarnings("ignore")  # of those packages
async def test_langchains_models(at, says, kind):
    if kind == "anthropic":
        module = pytest.importorskip("langchain_anthropic")
        model = module.ChatAnthropic(model="scripted", base_url=at, api_key="none", max_retries=0, max_tokens=100)
    else:
        module = pytest.importorskip("langchain_openai")
        # It keeps a client for each address and time, and that one is of the event loop which asked first.
        ways = {"use_responses_api": kind == "responses", "stream_usage": True, "timeout": 60 + (kind == "responses")}
        model = module.ChatOpenAI(model="scripted", base_url=f"{at}/v1", api_key="none", max_retries=0, **ways)
    says("Hello<turn|>", "Hello<turn|>", "Hello<turn|>", CALL, "Done<turn|>", OBJECT if kind != "anthropic" else
         "<|tool_call>call:Ring{n:3}<tool_call|><|tool_response>")  # fmt: skip
    assert model.invoke("Hi").text == "Hello"
    first, *rest = model.stream("Hi")
    for each in rest:
        first += each
    assert (first.text, first.usage_metadata["output_tokens"] > 0) == ("Hello", True)
    assert (await model.ainvoke("Hi")).text == "Hello"
    with_tool = model.bind_tools([RING])
    said = with_tool.invoke("Hi")
    (call,) = said.tool_calls
    assert (call["name"], call["args"]) == ("ring", {"n": 3})
    result = ToolMessage("ding", tool_call_id=call["id"])
    assert with_tool.invoke([HumanMessage("Hi"), said, result]).text == "Done"
    assert model.with_structured_output(Ring).invoke("Hi") == Ring(n=3)
