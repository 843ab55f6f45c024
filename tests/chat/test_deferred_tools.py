"""Deferred tools: a model finds them by a search within its call, and agents see one answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ProviderToolSearchMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.tools import StructuredTool, tool

from langchain_gemma_jax import ChatGemmaJax, InputError
from langchain_gemma_jax.chat.asking.tool_offer import MOST_LISTED, MOST_SEARCHES
from langchain_gemma_jax.dialects import Tool
from tests.chat.routes import route_of
from tests.dialects.vocabulary import tokenizer
from tests.own_engine import own_engine

ROOT = Path(__file__).parents[2]
FORMATS = {  # a call with one argument, and the end of a turn of words
    "gemma4": ('<|tool_call>call:{}{{{}:<|"|>{}<|"|>}}<tool_call|>', "<|tool_response>", "<turn|>"),
    "function_gemma": (
        "<start_function_call>call:{}{{{}:<escape>{}<escape>}}<end_function_call>",
        "<start_function_response>",
        "<end_of_turn>",
    ),
    "gemma": ('```tool_call\n{{"name": "{}", "parameters": {{"{}": "{}"}}}}\n```', "<end_of_turn>", "<end_of_turn>"),
}
VERBS, THINGS = ("get", "send", "delete", "list", "update"), ("mail", "calendar", "stock", "flight", "hotel")


@tool(extras={"defer_loading": True})
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"Sunny in {city}"


@tool
def now() -> str:
    """The time."""
    return "12:00"


def many(count: int, *, deferred: bool = True) -> list[StructuredTool]:
    """Make tools that do different things with different words."""
    return [
        StructuredTool.from_function(
            lambda name, note="": f"{name} {note}",
            name=f"{VERBS[number % 5]}_{THINGS[number // 5 % 5]}_{number}",
            description=f"{VERBS[number % 5].capitalize()}s {THINGS[number // 5 % 5]} number {number} of a customer.",
            extras={"defer_loading": deferred},
        )
        for number in range(count)
    ]


def call(dialect: str, name: str, argument: str, value: str) -> str:
    return FORMATS[dialect][0].format(name, argument, value)


def answers(dialect: str) -> tuple[str, str, str]:
    """A search, a call of what it found, and words."""
    _, after, end = FORMATS[dialect]
    search, found = call(dialect, "tool_search", "query", "weather"), call(dialect, "get_weather", "city", "Paris")
    return search + after, found + after, f"It is sunny.{end}"


def generated(answer: str) -> list[int]:
    return tokenizer().encode_scaffold(answer)


def extends(longer: tuple[int, ...], shorter: tuple[int, ...], answer: str) -> bool:
    """True if a prompt begins with another one and what was generated after it, but for the last token."""
    whole = [*shorter, *generated(answer)[:-1]]
    return list(longer[: len(whole)]) == whole


@pytest.mark.parametrize("by", ["the mark", "LangChain's middleware"])
@pytest.mark.parametrize("dialect", FORMATS)
def test_an_agent_finds_a_tool_among_two_hundred_and_no_token_is_read_again(dialect, by, scripted):
    said = answers(dialect)
    model, engine = scripted(*said, *said[2:], dialect=dialect, room=40_000)
    others = many(199) if by == "the mark" else many(199, deferred=False)
    names = [each.name for each in others]
    middleware = [] if by == "the mark" else [ProviderToolSearchMiddleware(searchable_tools=names)]
    agent = create_agent(model, [now, *others, get_weather], system_prompt="Be brief.", middleware=middleware)
    found = agent.invoke({"messages": [HumanMessage("How is the weather in Paris?")]})["messages"]
    asked, result, answer = found[1:]
    assert [each["name"] for each in asked.tool_calls] == ["get_weather"]
    assert (result.content, answer.content) == ("Sunny in Paris", "It is sunny.")
    ((search,),) = ([step["searches"] for step in asked.response_metadata["tool_search"]],)
    assert search[0]["query"] == "weather"
    assert search[0]["found"][0] == "get_weather"
    prompts = [each["prompt"] for each in engine.submitted]
    assert extends(prompts[1], prompts[0], said[0])
    assert extends(prompts[2], prompts[1], said[1])
    assert ["The weather of a city." in tokenizer().decode(each) for each in prompts] == [False, True, True]
    # The conversation goes through JSON, and on: all of it is still there.
    again = messages_from_dict(messages_to_dict(found))
    agent.invoke({"messages": [*again, HumanMessage("And now?")]})
    assert extends(engine.submitted[3]["prompt"], prompts[2], said[2])
    whole = model.get_num_tokens_from_messages(found[:1], [now, *many(199, deferred=False), get_weather.func])
    assert len(prompts[0]) < whole / 20
    assert asked.usage_metadata["output_tokens"] == len(generated(said[0])) + len(generated(said[1]))


def test_the_pages_say_how_many_tokens_two_hundred_tools_are():
    model, asked = ChatGemmaJax(model="sprout-m"), [HumanMessage("How is the weather in Paris?")]
    declared = model.get_num_tokens_from_messages(asked, [*many(199, deferred=False), get_weather.func])
    deferred = model.get_num_tokens_from_messages(asked, [*many(199), get_weather])
    page, readme = ((ROOT / name).read_text() for name in ("docs/agents.md", "README.md"))
    assert f"| declared | {declared:,} |\n| deferred | {deferred:,} |" in page
    assert f"200 tools in a prompt of {deferred:,} tokens" in readme
    assert f"instead of {declared:,}" in readme


def test_three_tools_are_loaded_behind_what_was_read(scripted):
    others = many(60)
    asked = [others[number].name for number in (3, 17, 42)]
    searches = [call("gemma4", "tool_search", "query", name) + "<|tool_response>" for name in asked]
    last = "".join(call("gemma4", name, "name", "a") for name in asked) + "<|tool_response>"
    model, engine = scripted(*searches, last, room=20_000)
    answer = model.bind_tools(others).invoke("Do it.")
    assert [each["name"] for each in answer.tool_calls] == asked
    prompts = [each["prompt"] for each in engine.submitted]
    for shorter, longer, said in zip(prompts, prompts[1:], searches, strict=False):
        assert extends(longer, shorter, said)
    assert [step["searches"][0]["found"][0] for step in answer.response_metadata["tool_search"]] == asked


def plain(message: AIMessage) -> tuple[object, ...]:
    metadata = {name: value for name, value in message.response_metadata.items() if name in {"tool_search", "logprobs"}}
    calls = [(each["name"], each["args"]) for each in message.tool_calls]
    return message.text, calls, message.invalid_tool_calls, metadata, message.usage_metadata["output_tokens"]


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
async def test_however_it_is_asked_there_is_one_answer_without_the_search(scripted):
    """Words around a search stay in their order; calls beside it are the agent's."""
    search, found = (call("gemma4", *each) for each in (("tool_search", "query", "weather"), ("now", "x", "y")))
    weather = call("gemma4", "get_weather", "city", "Rome")
    for said in (
        (f"Let me look. {search}<|tool_response>", f"Here. {weather}<|tool_response>"),
        (f"Both. {found}{search}<|tool_response>",),
        (f"<|channel>thought\nHm.<channel|>{search}{search}<|tool_response>", f"Well.{weather}<|tool_response>"),
        (f"{search}<|tool_response>", f"{search}<|tool_response>", "None of them.<turn|>"),
    ):
        model, engine = scripted(*said * 5, at_once=3, logprobs=True, timeout=600.0)
        bound = model.bind_tools([get_weather, now])
        first = bound.invoke("Hi")
        chunks = [list(bound.stream("Hi")), [chunk async for chunk in bound.astream("Hi")]]
        events = bound.stream_events("Hi", version="v3").output
        others = [await bound.ainvoke("Hi"), *(chunk[0] + chunk[1:] for chunk in chunks), events]
        assert all(plain(each) == plain(first) for each in others)
        assert not engine.answers
        assert not any(part["name"] == "tool_search" for each in chunks[0] for part in each.tool_call_chunks)
        assert first.response_metadata["finish_reason"] == ("tool_calls" if first.tool_calls else "stop")
        # The next prompt has the same words in the same order.
        engine.answers.append("So.<turn|>")
        results = [ToolMessage("done", tool_call_id=each["id"]) for each in first.tool_calls]
        bound.invoke([HumanMessage("Hi"), first, *results, HumanMessage("And?")])
        if "Both" not in said[0] and "thought" not in said[0]:
            assert extends(engine.submitted[-1]["prompt"], engine.submitted[len(said) - 1]["prompt"], said[-1])


def test_words_of_an_answer_that_were_changed_stay_as_they_are(scripted):
    search = call("gemma4", "tool_search", "query", "weather")
    model, engine = scripted(f"Let me look. {search}<|tool_response>", "Sunny.<turn|>", "So.<turn|>")
    bound = model.bind_tools([get_weather])
    answer = bound.invoke("Hi")
    assert answer.text == "Let me look. Sunny."
    bound.invoke([HumanMessage("Hi"), answer.model_copy(update={"content": "Rain."}), HumanMessage("And?")])
    shown = tokenizer().decode(engine.submitted[-1]["prompt"])
    assert "Rain." in shown
    assert "Let me look" not in shown
    assert "The weather of a city." in shown


def test_a_tool_that_was_not_found_cannot_be_called_and_the_error_says_how_to_find_it(scripted):
    weather = call("gemma4", "get_weather", "city", "Rome") + "<|tool_response>"
    model, engine = scripted(weather, answers("gemma4")[0], weather)
    bound = model.bind_tools([get_weather, now])
    refused = bound.invoke("Hi")
    assert not refused.tool_calls
    (invalid,) = refused.invalid_tool_calls
    assert "'get_weather' is deferred" in invalid["error"]
    assert "tool_search" in invalid["error"]
    assert bound.invoke("Hi").tool_calls
    # The grammar has no such call before either.
    spelled = [repr(each["sampling"].grammar.root) + repr(each["sampling"].grammar.rules) for each in engine.submitted]
    assert ["city" in each for each in spelled] == [False, False, True]


def test_a_few_names_are_listed_and_the_model_chooses_one(scripted):
    for count, listed in ((MOST_LISTED, True), (MOST_LISTED + 1, False)):
        model, engine = scripted("Hi<turn|>")
        model.bind_tools(many(count)).invoke("Hi")
        shown = tokenizer().decode(engine.submitted[0]["prompt"])
        assert (f"list_flight_{18}" in shown) is listed
        assert "number 18 of a customer" not in shown
        assert f"{count} more can be used" in shown
        rules = engine.submitted[0]["sampling"].grammar
        assert (f"list_flight_{18}" in repr(rules.root) + repr(rules.rules)) is listed


def test_searches_end(scripted):
    search = call("gemma4", "tool_search", "query", "weather") + "<|tool_response>"
    model, engine = scripted(*[search] * (MOST_SEARCHES + 1))
    answer = model.bind_tools([get_weather], max_tokens=10_000).invoke("Hi")
    assert len(answer.response_metadata["tool_search"]) == MOST_SEARCHES + 1  # the last one is not by the grammar
    most = [each["sampling"].max_tokens for each in engine.submitted]
    assert most == sorted(most, reverse=True)
    nothing = call("gemma4", "tool_search", "query", "zzzz") + "<|tool_response>"
    model, _ = scripted(*[nothing] * MOST_SEARCHES)
    with pytest.raises(InputError, match="searches found none"):
        model.bind_tools([get_weather], tool_choice="any").invoke("Hi")


def test_a_choice_of_a_deferred_tool_declares_it(scripted):
    model, engine = scripted(answers("gemma4")[1], "Hi<turn|>")
    assert model.bind_tools([get_weather, now], tool_choice="get_weather").invoke("Hi").tool_calls
    assert "The weather of a city." in tokenizer().decode(engine.submitted[0]["prompt"])
    model.bind_tools([get_weather, now], tool_choice="none").invoke("Hi")
    assert "The weather of a city." not in tokenizer().decode(engine.submitted[1]["prompt"])


def test_a_route_stays_with_its_size(said):
    model, engine, _ = said(*answers("gemma4")[:2])
    answer = model.bind_tools([get_weather]).invoke("Hi")
    assert answer.tool_calls
    assert route_of(answer)["size"] == "light"
    assert len(engine.routes) == 1


def test_the_forms_of_others_say_it_too(scripted):
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "get_weather", "description": "The weather.", "parameters": schema}
    forms = [
        {"type": "function", "function": function, "defer_loading": True},
        {"type": "function", "function": {**function, "defer_loading": True}},
        {"name": "get_weather", "description": "The weather.", "input_schema": schema, "defer_loading": True},
    ]
    for form in forms:
        model, engine = scripted(*answers("gemma4")[:2])
        others = [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, {"type": "tool_search"}]
        assert model.bind_tools([form, *others]).invoke("Hi").tool_calls
        assert len(engine.submitted) == 2
    assert Tool.of(forms[0]).deferred
    with pytest.raises(InputError, match=r"defer_loading.*expected True or False"):
        ChatGemmaJax().bind_tools([{**forms[0], "defer_loading": "yes"}])
    mine = {"name": "tool_search", "description": "Mine.", "parameters": schema}
    with pytest.raises(InputError, match="Give yours another name"):
        ChatGemmaJax().bind_tools([forms[0], mine])
    assert ChatGemmaJax().bind_tools([mine])


@pytest.mark.slow
def test_a_hundred_declarations_cost_nothing_in_the_second_conversation():
    """Declarations are read once, whatever follows them."""
    short = ({"name": f"{VERBS[number % 5]}_{number}", "description": "Does it."} for number in range(100))
    tools = [each | {"parameters": {"type": "object", "properties": {}}} for each in short]
    with own_engine():
        model = ChatGemmaJax(model="sprout-s", max_tokens=4, temperature=0).bind_tools(tools)
        first = model.invoke([("system", "Be brief."), ("user", "How is the weather?")]).usage_metadata
        second = model.invoke([("system", "Be brief."), ("user", "Who wrote Faust, and when was that?")]).usage_metadata
        assert first["input_token_details"]["cache_read"] == 0
        assert first["input_tokens"] > 2000
        read = second["input_tokens"] - second["input_token_details"]["cache_read"]
        assert read < 40
