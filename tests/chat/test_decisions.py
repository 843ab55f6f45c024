"""A decision model: probabilities that are read, questions that share what they are about, and routes that ask it."""

from __future__ import annotations

import math
import random

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_gemma_jax import ChatGemmaJax, ContextLengthError, InputError, Route, UnsupportedModelError
from langchain_gemma_jax import Choice as RouteChoice
from langchain_gemma_jax.chat.calling.label_scores import label_ids
from tests.chat.decision_models import STATE, Choice, Noul, Score, decisions, ours
from tests.dialects.vocabulary import tokenizer

QUESTIONS = {
    "urgent": Noul(instructions="IS THIS URGENT?"),
    "team": Choice(instructions="WHICH TEAM?", criteria={"billing": "MONEY", "technical": None}),
    "anger": Score(instructions="HOW ANGRY?", criteria=["CALM", "SAD", "ANGRY"]),
}


@pytest.fixture
def judge(chat_of):
    return ours.GemmaDecisionModel(model=chat_of().model)


async def test_answers_are_probabilities(judge):
    found = judge.invoke({"state": STATE, "questions": QUESTIONS})
    assert 0 < found.nouls["urgent"].noul < 1
    team, anger = found.choices["team"], found.scores["anger"]
    assert set(team.probabilities) == {"billing", "technical"}
    assert math.isclose(sum(team.probabilities.values()), 1)
    assert team.confidence == team.probabilities[team.choice] == max(team.probabilities.values())
    assert math.isclose(anger.score, sum(level * share for level, share in anger.probabilities.items()))
    assert anger.legend == {0: "CALM", 1: "SAD", 2: "ANGRY"}
    again = await judge.ainvoke({"state": STATE, "questions": QUESTIONS})
    for other in (again, *judge.batch([{"state": STATE, "questions": QUESTIONS}] * 2)):
        assert other.nouls["urgent"].noul == pytest.approx(found.nouls["urgent"].noul, abs=1e-3)
        assert other.choices["team"].probabilities == pytest.approx(team.probabilities, abs=1e-3)
        assert other.scores["anger"].probabilities == pytest.approx(anger.probabilities, abs=1e-3)
    # The second time all but the last token was there already.
    assert again.usage["input_token_details"]["cache_read"] == again.usage["input_tokens"] - len(QUESTIONS)


async def test_what_is_not_possible_is_refused(scripted):
    scripted()
    judge = ours.GemmaDecisionModel(model="judge")
    image = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    box = decisions.Box(instructions="Where?")
    for state, questions, match in (
        ("x", {}, "expected one at least"),
        ([image, image], QUESTIONS, "reads text alone"),
        (HumanMessage([image]), {"team": QUESTIONS["team"]}, "words alone"),
        ("x", {"where": box}, "reads text alone"),
        ("x", {"one": Choice(instructions="?", criteria=dict.fromkeys(map(str, range(60))))}, "at most 52"),
    ):
        with pytest.raises(InputError, match=match):
            judge.invoke({"state": state, "questions": questions})
        with pytest.raises(InputError, match=match):
            await judge.ainvoke({"state": state, "questions": questions})
    with pytest.raises(InputError, match="calibration"):
        ours.GemmaDecisionModel(calibration=0)
    with pytest.raises(ContextLengthError):
        ours.GemmaDecisionModel(model="judge", max_context=20).invoke({"state": STATE, "questions": QUESTIONS})

    class Poor:
        def encode_text(self, text):
            return [1]

    with pytest.raises(UnsupportedModelError, match="cannot tell the answers Yes, No apart"):
        label_ids(("Yes", "No"), Poor(), "poor")


def test_a_route_asks_it(scripted):
    model, engine = scripted("B", "Hello<turn|>", "A", "Hello<turn|>", "Hello<turn|>")
    policy = ours.DecidedRoute(ours.GemmaDecisionModel(model="judge"), {"light": "small talk", "heavy": "work"})
    llm = ChatGemmaJax(route=Route(light="./light", heavy="./heavy", policy=policy))
    for size in ("heavy", "light"):
        told = llm.invoke("Do it").response_metadata["route"]
        assert told["size"] == size
        assert told["reason"].startswith("the decision model is sure of it to 9")
    assert "Do it" in tokenizer().decode(engine.submitted[0]["prompt"])
    assert "B) heavy: work" in tokenizer().decode(engine.submitted[0]["prompt"])
    call = {"name": "ring", "args": {}, "id": "1"}
    going_on = [
        HumanMessage("Do it"),
        AIMessage("", tool_calls=[call], response_metadata={"model_name": "./light"}),
        ToolMessage("ding", tool_call_id="1"),
    ]
    assert llm.invoke(going_on).response_metadata["route"]["reason"] == "a tool loop is not split"
    assert model.model == "scripted"


@pytest.mark.long
def test_calibration_makes_known_answers_as_likely_as_they_are_right():
    chosen = random.Random(3)
    for true in (0.5, 1.0, 3.0):
        known = []
        for _ in range(3000):  # a model that is too sure of itself by `true`
            logits = [chosen.gauss(0, 2) for _ in range(4)]
            right = chosen.choices(range(4), ours.probabilities(logits, true))[0]
            known.append((ours.probabilities(logits, 1.0), right))
        assert ours.best_calibration(known) == pytest.approx(true, rel=0.1)
    assert ours.best_calibration([([0.6, 0.4], 0)] * 5) == 0.05, "all are right: as sure as it may be"
    assert ours.best_calibration([([1.0, 0.0], 1)] * 5) == 20.0, "all are wrong, and it was certain"


def test_a_calibrated_judge_is_a_copy_that_believes_itself_less(judge):
    team = QUESTIONS["team"]
    best = judge.invoke({"state": STATE, "questions": {"team": team}}).choices["team"]
    (other,) = set(team.criteria) - {best.choice}
    calibrated = judge.calibrated([(STATE, team, best.choice), (STATE, team, other)])
    assert judge.calibration == 1.0
    assert calibrated.calibration == 20.0, "it is right half of the time, so it knows nothing"
    assert calibrated.invoke({"state": STATE, "questions": {"team": team}}).choices["team"].confidence < 0.6
    for wrong in (
        [],
        [(STATE, team, "sales")],
        [(STATE, QUESTIONS["urgent"], "yes")],
        [(STATE, QUESTIONS["anger"], 3)],
    ):
        with pytest.raises(InputError, match="known: expected"):
            judge.calibrated(wrong)


def test_a_policy_decides_without_a_model():
    seen = []

    def policy(signals):
        seen.append(signals)
        return RouteChoice("heavy" if "hard" in signals.said else "light", "by words")

    model = ours.PolicyDecisionModel(policy=policy)
    question = Choice(instructions="", criteria={"light": "little", "heavy": "much"})
    for state in ("a hard one", HumanMessage("a hard one"), [HumanMessage("a hard one")], {"said": "a hard one"}):
        found = model.invoke({"state": state, "questions": {"size": question}}).choices["size"]
        assert (found.choice, found.probabilities) == ("heavy", {"light": 0.0, "heavy": 1.0})
    assert seen[0].sizes == ("light", "heavy")
    other = Choice(instructions="", criteria={"a": "", "b": ""})
    for wrong, match in ((Noul(instructions="?"), "is a Noul"), (other, "the policy to give a Choice of a, b")):
        with pytest.raises(InputError, match=match):
            model.invoke({"state": "x", "questions": {"size": wrong}})
