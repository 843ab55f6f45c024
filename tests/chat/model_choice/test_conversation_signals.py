"""The signals that a conversation's messages show before any model has read them."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_gemma_jax.chat.model_choice.conversation_signals import CHARACTERS_A_TOKEN, conversation_signals
from langchain_gemma_jax.routing import Signals


def asks(text="A question?"):
    return HumanMessage(text)


def calls(bad=0, good=1):
    call = {"name": "ring", "args": {}, "id": "1", "type": "tool_call"}
    wrong = {"name": "ring", "args": "{", "id": "2", "error": "", "type": "invalid_tool_call"}
    return AIMessage("", tool_calls=[call] * good, invalid_tool_calls=[wrong] * bad)


def result(status="success"):
    return ToolMessage("done", tool_call_id="1", status=status)


def test_nothing_shows_nothing():
    seen = conversation_signals([])
    assert (seen.tokens, seen.results, seen.failed, seen.quiet_turns) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("messages", "results", "failed"),
    [
        ([asks()], 0, 0),
        ([asks(), calls(), result()], 1, 0),
        ([asks(), calls(), result("error")], 1, 1),
        ([asks(), calls(bad=2, good=0)], 0, 2),
        ([asks(), calls(bad=1), result("error"), calls(), result()], 2, 2),
        ([asks(), calls(bad=1), result("error"), asks("Never mind.")], 0, 0),  # a new question: all that is past
        ([SystemMessage("You ring."), calls(), result()], 1, 0),  # nobody has asked
    ],
)
def test_results_and_failures_count_since_somebody_last_said_something(messages, results, failed):
    seen = conversation_signals(messages)
    assert (seen.results, seen.failed) == (results, failed)


def test_quiet_turns_are_those_in_a_row_before_this_one():
    quiet = [asks(), AIMessage("An answer.")]
    for before, turns in (
        ([], 0),
        (quiet, 1),
        (quiet * 3, 3),
        ([*quiet, asks(), calls(), result(), AIMessage("Rung.")], 0),
        ([asks(), calls(), result(), AIMessage("Rung."), *quiet * 2], 2),
    ):
        assert conversation_signals([*before, asks()]).quiet_turns == turns
        assert conversation_signals([*before, asks(), calls(), result()]).quiet_turns == turns, (
            "this one does not count"
        )


def test_tokens_are_those_that_the_last_answer_counted_and_what_came_behind_it():
    counted = AIMessage("x" * 4000, usage_metadata={"input_tokens": 90, "output_tokens": 10, "total_tokens": 100})
    text = "x" * 40 * CHARACTERS_A_TOKEN
    assert conversation_signals([asks(text), AIMessage(text), asks(text)]).tokens == 120
    assert conversation_signals([asks(text), counted]).tokens == 100
    assert conversation_signals([counted, asks(text), AIMessage(text), asks(text)]).tokens == 220
    later = counted.model_copy(update={"usage_metadata": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}})
    assert conversation_signals([counted, asks(text), later, asks(text)]).tokens == 42


def test_a_policy_is_told_of_it_beside_what_is_known_of_the_call():
    seen = conversation_signals([asks(), AIMessage("a"), asks("x" * 80), calls(bad=1), result()])
    told = seen.signals(("light", "heavy"), "light", tools=2, forced=True, structured=False)
    assert told == Signals(
        sizes=("light", "heavy"),
        last="light",
        tools=2,
        forced=True,
        structured=False,
        prompt_tokens=seen.tokens,
        results=1,
        failed=1,
        quiet_turns=1,
        resident=frozenset(),
        switch_s={},
        said="x" * 80,
    )
    assert "xxx" not in repr(told) + repr(seen)  # what people say goes into no log
    memory = seen.signals(
        ("a",), None, tools=0, forced=False, structured=True, resident=frozenset({"a"}), switch_s={"a": 1.5}
    )
    assert (memory.resident, memory.switch_s, memory.structured) == ({"a"}, {"a": 1.5}, True)
