"""A model of several sizes: who answers, why, and who takes over."""

from __future__ import annotations

import json
import pickle
from math import exp

import pytest
from langchain_core.load import dumps, loads
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

from langchain_gemma_jax import Calibration, ChatGemmaJax, Choice, InputError, Route
from langchain_gemma_jax.chat.history import generated_ids
from langchain_gemma_jax.engine.base.events import StepRouted
from tests.chat.routes import CALL, SIZES, ring, route_of
from tests.dialects.vocabulary import tokenizer


def test_small_talk_goes_to_the_small_one_and_work_to_the_large_one(said):
    model, engine, _ = said("Hello<turn|>", f"{CALL}<|tool_response>")
    first = model.invoke("Hi")
    assert route_of(first) == {"size": "light", "model": "./light", "reason": "load 0.0: it asks little", "last": None}
    assert first.response_metadata["model_name"] == "./light"
    assert engine.loaded[0] == "./light"
    assert engine.routes == [StepRouted("light", switched=False, escalated=False)]
    second = model.bind_tools([ring], tool_choice="any").invoke("Ring")
    assert route_of(second)["size"] == "heavy"
    assert engine.loaded[0] == "./heavy"


def test_streams_say_so_in_their_last_chunk(said):
    model, _, _ = said("Hello<turn|>")
    chunks = list(model.stream("Hi"))
    assert route_of(chunks[-1])["size"] == "light"
    assert not any("route" in chunk.response_metadata for chunk in chunks[:-1])


def test_whoever_names_a_model_gets_it(said):
    model, engine, seen = said(*["Hello<turn|>"] * 3, policy=lambda signals: Choice("light", "always"))
    assert route_of(model.invoke("Hi", model="heavy"))["reason"] == "named by the caller"
    assert engine.loaded[0] == "./heavy"
    assert "route" not in model.invoke("Hi", model="./another").response_metadata
    assert engine.loaded[0] == "./another"
    assert seen == []


def test_what_a_policy_is_shown(said):
    model, _, seen = said(*["Hello<turn|>"] * 3, policy=lambda signals: Choice("heavy", "always"))
    wanted = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    conversation = [
        HumanMessage("x" * 400),
        AIMessage("", tool_calls=[{"name": "ring", "args": {"times": 1}, "id": "1"}]),
        ToolMessage("ding", tool_call_id="1"),
        AIMessage("Done.", response_metadata={"model_name": "./light"}),
        HumanMessage("Thanks"),
        AIMessage("You are welcome.", response_metadata={"model_name": "./light"}),
        HumanMessage("Again"),
        AIMessage(
            "",
            tool_calls=[{"name": "ring", "args": {"times": 1}, "id": "2"}],
            response_metadata={"model_name": "./heavy"},
        ),
        ToolMessage("no bell", tool_call_id="2", status="error"),
    ]
    model.bind_tools([ring], tool_choice="ring", response_format=wanted).invoke(conversation)
    model.invoke(conversation[:7])
    model.bind_tools([ring], tool_choice="none").invoke("Hi")
    busy, quiet, none = seen
    assert busy.sizes == ("light", "heavy")
    assert (busy.last, busy.tools, busy.forced, busy.structured) == ("heavy", 1, True, True)
    assert (busy.results, busy.failed) == (1, 1)
    assert 100 < busy.prompt_tokens < 130
    assert (quiet.last, quiet.results, quiet.failed, quiet.quiet_turns) == ("light", 0, 0, 1)
    assert (none.last, none.tools, none.forced) == (None, 0, False)


def test_a_conversation_stays_with_its_size_through_every_form(said):
    model, _, seen = said(
        *[f"{CALL}<|tool_response>"] * 4, policy=lambda signals: Choice(signals.last or "heavy", "as before")
    )
    first = model.bind_tools([ring]).invoke("Ring")
    result = ToolMessage("ding", tool_call_id=first.tool_calls[0]["id"])
    stripped = AIMessage(first.content, tool_calls=first.tool_calls)
    (sent,) = convert_to_messages(convert_to_openai_messages([first]))
    for form in (first, stripped, sent):
        assert route_of(model.bind_tools([ring]).invoke([HumanMessage("Ring"), form, result]))["size"] == "heavy"
    assert [signals.last for signals in seen] == [None, "heavy", "heavy", "heavy"]


def test_what_is_remembered_is_bounded(said, monkeypatch):
    monkeypatch.setattr(generated_ids, "MOST_BYTES_ROUTED", 1000)  # two of them
    model, _, _ = said(*["Hello<turn|>"] * 4)
    for word in "abcd":
        model.invoke(word)
    assert len(generated_ids.conversation_memory().answered) == 2


def test_a_failed_call_goes_up(said):
    model, _, _ = said("Hello<turn|>")
    failed = [
        HumanMessage("Ring"),
        AIMessage(
            "",
            tool_calls=[{"name": "ring", "args": {"times": 1}, "id": "1"}],
            response_metadata={"model_name": "./light"},
        ),
        ToolMessage("no bell", tool_call_id="1", status="error"),
    ]
    assert route_of(model.bind_tools([ring]).invoke(failed)) == {
        "size": "heavy",
        "model": "./heavy",
        "reason": "a call failed on light",
        "last": "light",
    }


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
async def test_a_call_that_the_small_one_is_not_sure_of_is_given_by_the_large_one(way, said):
    # Each of the scripted tokens has a log-probability of -0.5.
    calibration = {"light": Calibration(calls=0.05)}
    model, engine, _ = said(*[f"{CALL}<|tool_response>"] * 2, route={"calibration": calibration})
    bound = model.bind_tools([ring])
    if way == "invoke":
        answer = bound.invoke("Ring")
    elif way == "ainvoke":
        answer = await bound.ainvoke("Ring")
    elif way == "stream":
        first, *rest = bound.stream("Ring")
        answer = first + rest
    else:
        chunks = [chunk async for chunk in bound.astream("Ring")]
        answer = chunks[0] + chunks[1:]
    assert len(answer.tool_calls) == 1
    assert len(engine.submitted) == 2
    assert route_of(answer)["size"] == "heavy"
    assert route_of(answer)["escalated_from"] == ["light"]
    count = len(tokenizer().encode_scaffold(f"{CALL}<|tool_response>"))
    assert route_of(answer)["reason"] == f"light was sure of its call to {exp(-0.025 * count):.0%} only"
    assert engine.routes == [
        StepRouted("light", switched=False, escalated=False),
        StepRouted("heavy", switched=False, escalated=True),
    ]
    assert "logprobs" not in answer.response_metadata
    assert [request["sampling"].confidence for request in engine.submitted] == [True, False]


def test_one_that_it_is_sure_of_stays(said):
    model, engine, _ = said(
        f"{CALL}<|tool_response>",
        "Hello<turn|>",
        f"{CALL}<|tool_response>",
        route={"confidence": 0.5, "calibration": {"light": Calibration(calls=0.01)}},
    )
    assert route_of(model.bind_tools([ring]).invoke("Ring"))["size"] == "light"
    assert route_of(model.bind_tools([ring]).invoke("Hi"))["size"] == "light"
    assert not engine.answers[1:]
    # Nobody takes over from a size that was named.
    model.route = Route(**SIZES, confidence=0.99)
    assert route_of(model.bind_tools([ring]).invoke("Ring", model="light"))["size"] == "light"


def test_without_a_calibration_only_what_is_no_call_goes_up(said):
    model, engine, _ = said(f"{CALL}<|tool_response>")
    assert route_of(model.bind_tools([ring]).invoke("Ring"))["size"] == "light"
    assert not engine.submitted[0]["sampling"].confidence
    assert Route(light="sprout-s", heavy="sprout-m").judged
    assert not Route(light="sprout-s", heavy="sprout-m", confidence=0).judged
    assert not Route(**SIZES).judged
    with pytest.raises(InputError, match="expected a Calibration for one of light, heavy"):
        Route(**SIZES, calibration={"light": 1.0})
    with pytest.raises(InputError, match="above 0 for calls"):
        Calibration(calls=0)


@pytest.mark.parametrize(
    ("call", "reason"),
    [("<|tool_call>sing<tool_call|><turn|>", "could not be understood"), ("<|tool_call>call:ring{ti", "was cut off")],
)
def test_what_is_no_call_goes_up(call, reason, said):
    model, engine, _ = said(call, f"{CALL}<|tool_response>")
    answer = model.bind_tools([ring]).invoke("Ring")
    assert answer.tool_calls
    assert route_of(answer)["reason"] == f"a call of light {reason}"
    assert len(engine.submitted) == 2


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"model": "auto"}, "expected a route to choose from"),
        ({"route": {"light": "./a"}}, "two or more"),
        ({"route": "light"}, "route: expected Route"),
        ({"route": {"light": "./a", "heavy": "./b", "policy": "x"}}, "policy cannot be in a dictionary"),
        ({"model": "x", "keep_alive": -1}, "keep_alive"),
    ],
)
def test_what_is_not_possible_is_refused(given, match):
    with pytest.raises(InputError, match=match):
        ChatGemmaJax(**given)


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_a_route_alone_means_auto_and_is_stored_in_plain_values():
    model = ChatGemmaJax(route=Route(**SIZES))
    assert model.model == "auto"
    assert model.route == SIZES
    assert loads(dumps(model), allowed_objects=[ChatGemmaJax], valid_namespaces=["langchain_gemma_jax"]) == model
    assert pickle.loads(pickle.dumps(model)) == model
    assert json.loads(json.dumps(model.route)) == ChatGemmaJax(route=SIZES).route


def test_policies_know_what_is_in_memory_and_what_a_switch_would_take(chat_of, folder_of):
    seen = []

    def policy(signals):
        seen.append(signals)
        return Choice("light", "always")

    sizes = {"light": str(folder_of(seed=1)), "heavy": str(folder_of(seed=2))}
    model = chat_of(model="auto", route=Route(**sizes, policy=policy))
    answer = model.invoke("HELLO " * 20)
    model.invoke([HumanMessage("HELLO " * 20), answer, HumanMessage("AND?")])
    model.invoke("HELLO", model="heavy")
    model.invoke([HumanMessage("HELLO " * 20), answer, HumanMessage("AND?")])
    before, between, after = seen
    assert "heavy" not in before.resident
    assert between.resident == {"light"}
    assert after.resident == {"light", "heavy"}
    assert between.switch_s["light"] == 0
    assert 0 <= after.switch_s["heavy"] < 60


def test_two_sizes_in_one_engine(whole_of, folder_of, running):
    before = running.report()
    route = Route(light=str(folder_of(seed=1)), heavy=str(folder_of()))
    model = whole_of(model="auto", route=route, max_tokens=60)
    light, heavy = model.invoke("HELLO"), model.bind_tools([ring], tool_choice="any").invoke("HELLO")
    assert (route_of(light)["size"], route_of(heavy)["size"]) == ("light", "heavy")
    assert heavy.tool_calls
    after = running.report()
    assert {size: after.routed[size] - before.routed.get(size, 0) for size in after.routed} == {"light": 1, "heavy": 1}
    assert "routed to heavy" in str(after)
    assert model.get_num_tokens_from_messages([HumanMessage("HELLO")]) == light.usage_metadata["input_tokens"]
    assert model.get_token_ids("HELLO")
    with_names = [HumanMessage("HELLO"), heavy, ToolMessage("ding", tool_call_id=heavy.tool_calls[0]["id"])]
    assert route_of(model.invoke(with_names))["reason"] == "a tool loop is not split"


def test_what_is_judged_is_still_forced(whole_of, folder_of):
    sizes = {"light": str(folder_of()), "heavy": str(folder_of(seed=1))}
    for factor, size in ((1e-9, "light"), (1e9, "heavy")):
        route = Route(**sizes, calibration={"light": Calibration(calls=factor)})
        model = whole_of(model="auto", route=route, max_tokens=60)
        answer = model.bind_tools([ring], tool_choice="any").invoke("HELLO")
        assert route_of(answer)["size"] == size
        assert route_of(answer).get("escalated_from", []) == ([] if size == "light" else ["light"])
        assert answer.response_metadata["timings"]["forced_tokens"] > 0
