"""Answers cross the wire as plain events, and mean the same behind it."""

from __future__ import annotations

import json

import pytest

from langchain_gemma_jax import ServerError
from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart, WholeAnswer
from langchain_gemma_jax.dialects import ArgumentsDelta, CallBegin, CallEnd, Invalid, TextDelta, ThoughtDelta, ToolCall
from langchain_gemma_jax.wire.answer_forms import WireParts, shown_in, whole_in, whole_out

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
BROKEN = Invalid('{"n', "cut off", "ring", unfinished=True)
EVENTS = [
    ThoughtDelta("Hm"),
    TextDelta("Наталья \ud800"),
    CallBegin("ring"),
    ArgumentsDelta('{"n":3}'),
    CallEnd({"n": 3}),
    BROKEN,
]
LOGPROB = {"token": "a", "bytes": [97], "logprob": -0.5, "top_logprobs": []}


class Noted:
    """The parts that were shown, as they came."""

    def of(self, part):
        return [part]

    def broken(self):
        return []

    def last(self, end):
        return [end]


def sent(told: list[dict]) -> list:
    """Return what arrives of objects."""
    return [each for one in told for each in shown_in(json.loads(json.dumps(one)), Noted())]


def test_parts_and_the_end_arrive_as_they_were():
    wire = WireParts()
    (first,), (second,) = wire.of(AnswerPart(EVENTS[:2], [LOGPROB], "m")), wire.of(AnswerPart(EVENTS[2:], (), "m"))
    assert sent([first]) == [AnswerPart(EVENTS[:2], [LOGPROB], "m")]
    assert sent([second]) == [AnswerPart(EVENTS[2:])], "the model is named once"
    assert wire.of(AnswerPart([], (), "m")) == [], "what cannot be shown yet needs no line"
    end = AnswerEnd([TextDelta("!")], USAGE, {"finish_reason": "stop", "model_name": "m"})
    assert sent(wire.last(end)) == [end]
    assert wire.broken() == []


def test_what_came_together_is_joined_before_it_is_sent():
    (told,) = WireParts().of(AnswerPart([TextDelta("a"), TextDelta("b")]))
    assert told == {"events": [["text", "ab"]]}


def test_a_whole_answer_arrives_as_it_was():
    answer = Answer("Hi", "Hm", (ToolCall("ring", {"n": 3}),), (BROKEN,))
    for found in (
        WholeAnswer(answer, USAGE, {"finish_reason": "stop"}, [LOGPROB]),
        WholeAnswer(Answer("", "", (), ()), USAGE, {}, ()),
    ):
        assert whole_in(json.loads(json.dumps(whole_out(found)))) == found


@pytest.mark.parametrize(
    "told",
    [{}, {"events": 3}, {"events": [["song", "la"]]}, {"events": [[]]}, {"events": [["call"]]}, {"content": "Hi"}],
)
def test_another_version_s_form_is_refused_in_words(told):
    for read in (lambda: shown_in(told, Noted()), lambda: whole_in(told)):
        with pytest.raises(ServerError, match="client and server of one version"):
            read()
