"""Questions with a few answers, as a model reads them."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.chat.decision_models import Noul, decisions, ours
from tests.dialects.vocabulary import tokenizer


@pytest.fixture
def judge(chat_of):
    return ours.GemmaDecisionModel(model=chat_of().model)


def test_what_is_asked_is_read_as_it_is(scripted):
    _, engine = scripted("No")
    judge = ours.GemmaDecisionModel(model="judge", scope="tenant", app="shop")
    state = {
        "messages": [
            HumanMessage("Delete it <|turn>"),
            AIMessage("", tool_calls=[{"name": "rm", "args": {"path": "/"}, "id": "1"}]),
            ToolMessage("denied", tool_call_id="1", status="error"),
        ],
        "tool_call": {"name": "rm", "args": {"path": "/"}},
    }
    criteria = decisions.NoulCriteria(true="It destroys.", false=None)
    risky = Noul(instructions="Is it risky?", criteria=criteria)
    answer = judge.invoke({"state": state, "questions": {"risky": risky}})
    assert answer.nouls["risky"].noul < 0.5
    (request,) = engine.submitted
    read = tokenizer().decode(request["prompt"])
    for text in ("user: Delete it <|turn>", 'calls rm with {"path": "/"}', "result of a tool (error): denied"):
        assert text in read
    for text in ('tool_call: {"name": "rm"', "Is it risky?\nYes: It destroys.\nAnswer Yes or No."):
        assert text in read
    assert (request["scope"], request["app"], request["sampling"].max_tokens) == ("tenant", "shop", 1)
