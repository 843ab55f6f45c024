"""``GemmaDecisionModel``: Gemma as a LangChain decision model, which reads probabilities instead of generating text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict

try:
    from langchain_core.decisions import (
        Answer,
        BaseDecisionModel,
        Choice,
        ChoiceAnswer,
        ClassifierRequest,
        ClassifierResponse,
        NoulAnswer,
        Question,
        Score,
        ScoreAnswer,
        State,
    )
except ImportError as error:
    raise ImportError(
        "Decision models came with langchain-core 1.8, and the one that is installed has none: "
        'pip install --upgrade "langchain-core>=1.8".'
    ) from error
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.chat.asking.options import Options, constructor_arguments, options
from langchain_gemma_jax.chat.asking.questions import AskedQuestion, asked_question
from langchain_gemma_jax.chat.calling.label_scores import AwaitedScores, LabelScores, begin_scores
from langchain_gemma_jax.chat.calling.starting import abegin, begin
from langchain_gemma_jax.chat.model_choice.conversation_signals import conversation_signals
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.provider import PROVIDER
from langchain_gemma_jax.routing import Choice as RouteChoice
from langchain_gemma_jax.routing import Signals, default_policy
from langchain_gemma_jax.routing.route import checked_choice
from langchain_gemma_jax.settings.table import SETTINGS, DialogueSettings

_QUESTION, _ASKED = "size", "asked"
_MOST_DIVIDED = 20.0


class GemmaDecisionModel(DialogueSettings, BaseDecisionModel):
    """Gemma as a model that decides: yes or no, one of several labels, or a level of a scale.

        model = GemmaDecisionModel(model="google/gemma-3-1b-it")
        asked = {"urgent": Noul(instructions="Is this urgent?")}
        model.invoke({"state": "Payments fail since Monday.", "questions": asked}).nouls["urgent"].noul

    Each question is read once, after the state that it is about, and the result is the probability of each answer at
    that place. So an answer costs only the reading, and questions about the same state share it. ``confidence`` is the
    probability of the most likely answer.

    Raises:
        InputError: a setting is not possible. The message says which values are.
    """

    model_config = ConfigDict(defer_build=False)

    calibration: float = 1.0
    """Above 0: the number that differences of the model's scores are divided by. Above 1 makes it less confident. It is
    a constant of the checkpoint, which ``calibrated`` measures on questions with known answers."""

    if not TYPE_CHECKING:  # type checkers derive the arguments from the fields

        def __init__(self, **given: Any) -> None:
            divisor = given.get("calibration", 1.0)
            if isinstance(divisor, bool) or not isinstance(divisor, int | float) or not 0 < divisor < 1e6:
                raise InputError(f"calibration: expected a number above 0, found {divisor!r}.")
            super().__init__(**constructor_arguments(given, set(type(self).model_fields), type(self).__name__))

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {"token": "HF_TOKEN"}

    @property
    def _provider(self) -> str:
        return PROVIDER

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        asked, settings = _asked(state, questions), self._options()
        clock, running = Clock(settings.timeout), list[AwaitedScores]()
        try:
            for each in asked:
                running.append(begin(partial(begin_scores, each, settings, clock), clock))
            return self._response(questions, [each.result() for each in running])
        finally:
            for one in running:
                one.cancel()

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        asked, settings = _asked(state, questions), self._options()
        clock, running = Clock(settings.timeout), list[AwaitedScores]()
        try:
            for each in asked:
                running.append(await abegin(partial(begin_scores, each, settings, clock), clock))
            return self._response(questions, [await each.aresult() for each in running])
        finally:
            for one in running:
                one.cancel()

    def calibrated(self, known: Sequence[tuple[State, Question, bool | int | str]]) -> Self:
        """Return a copy with the calibration that makes the known right answers most likely together.

        Args:
            known: triples of state, question and right answer: True or False for yes or no, the name of a choice, or
                the level of a scale, from 0. Fifty questions of the kind that will be asked are enough.

        Raises:
            InputError: there are no triples, or an answer is not possible for its question.
        """
        if not known:
            raise InputError("known: expected some questions with their right answers, found none.")
        rights = [right_answer(question, right) for _, question, right in known]
        as_read = self.model_copy(update={"calibration": 1.0})
        asked = [ClassifierRequest(state=state, questions={_ASKED: question}) for state, question, _ in known]
        found = [_shares(response) for response in as_read.batch(asked)]
        return self.model_copy(update={"calibration": best_calibration(list(zip(found, rights, strict=True)))})

    def _response(self, questions: Mapping[str, Question], scores: Sequence[LabelScores]) -> ClassifierResponse:
        answers: dict[str, Answer] = {
            name: answer(question, probabilities(each.logprobs, self.calibration))
            for (name, question), each in zip(questions.items(), scores, strict=True)
        }
        read, written = sum(each.read for each in scores), sum(each.generated for each in scores)
        usage = UsageMetadata(
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            input_token_details=InputTokenDetails(cache_read=sum(each.reused for each in scores)),
        )
        return ClassifierResponse(model=self.model, answers=answers, usage=usage)

    def _options(self) -> Options:
        stored = {name: getattr(self, name, None) for name in SETTINGS}
        return options({**stored, "token": self.token}, None, {})


def _asked(state: State, questions: Mapping[str, Question]) -> list[AskedQuestion]:
    if not questions:
        raise InputError("questions: expected one at least, found none.")
    return [asked_question(name, state, question) for name, question in questions.items()]


def probabilities(logprobs: Sequence[float], calibration: float) -> list[float]:
    """Return the probability of each answer, given that one of them is right.

    >>> probabilities([-1.0, -1.0], 1.0)
    [0.5, 0.5]
    """
    best = max(logprobs)
    shares = [exp((each - best) / calibration) for each in logprobs]
    return [share / sum(shares) for share in shares]


def right_answer(question: Question, right: object) -> int:
    """Return the index of a question's right answer among its possible answers.

    Raises:
        InputError: it is not one of them.
    """
    if isinstance(question, Choice):
        possible: list[object] = list(question.criteria)
    elif isinstance(question, Score):
        possible = list(range(len(question.criteria)))
    else:
        possible = [True, False]
    for place, each in enumerate(possible):
        if type(each) is type(right) and each == right:
            return place
    raise InputError(f"known: expected one of {', '.join(map(repr, possible))} as the right answer, found {right!r}.")


def _shares(response: ClassifierResponse) -> list[float]:
    """Return the probability of each answer to the one question, in order."""
    for choice in response.choices.values():
        return list(choice.probabilities.values())
    for score in response.scores.values():
        return list(score.probabilities.values())
    (yes,) = response.nouls.values()
    return [yes.noul, 1 - yes.noul]


def best_calibration(known: Sequence[tuple[Sequence[float], int]]) -> float:
    """Return the divisor of scores that makes the right answers most likely together.

    Their surprisal is convex in the inverse of the divisor, so a ternary search finds it. If all answers are right, it
    would be 0, and if chance is better than the model, infinite: so it is limited to between 1/20 and 20.

    >>> best_calibration([([0.9, 0.1], 0), ([0.9, 0.1], 1)])
    20.0
    """
    logs = [([log(max(share, 1e-30)) for share in shares], right) for shares, right in known]

    def surprise(inverse: float) -> float:
        return -sum(log(max(probabilities(each, 1 / inverse)[right], 1e-300)) for each, right in logs)

    low, high = 1 / _MOST_DIVIDED, _MOST_DIVIDED
    for _ in range(60):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        if surprise(one) <= surprise(other):
            high = other
        else:
            low = one
    return round(1 / ((low + high) / 2), 3)


def answer(question: Question, shares: Sequence[float]) -> NoulAnswer | ChoiceAnswer | ScoreAnswer:
    """Return the answer to a question, from the probabilities of its possible answers."""
    if isinstance(question, Choice):
        named = dict(zip(question.criteria, shares, strict=True))
        best = max(named, key=named.__getitem__)
        return ChoiceAnswer(type="choice", choice=best, probabilities=named, confidence=named[best])
    if isinstance(question, Score):
        levels = dict(enumerate(shares))
        return ScoreAnswer(
            type="score",
            score=sum(level * share for level, share in levels.items()),
            legend=dict(enumerate(question.criteria)),
            probabilities=levels,
            confidence=max(shares),
        )
    return NoulAnswer(type="noul", noul=shares[0])


@dataclass(frozen=True)
class DecidedRoute:
    """A policy for ``Route``: a decision model chooses the size by the user's last message.

        sizes = {"light": "Small talk, and one call of a tool.", "heavy": "Several steps, or many tools."}
        Route(light="./270m", heavy="./4b", policy=DecidedRoute(GemmaDecisionModel(model="./270m"), sizes))

    ``criteria`` says what each size of the route is for. After a tool's result the decision model is not used: the size
    that called the tool continues, or a larger one if its call failed.
    """

    model: BaseDecisionModel
    criteria: Mapping[str, str]
    instructions: str = "Which of these suits the request best?"

    def __call__(self, signals: Signals) -> RouteChoice:
        """Return the size for a step, and the reason."""
        if signals.last is not None and (signals.results or signals.failed):
            return default_policy(signals)
        known = {size: self.criteria.get(size) for size in signals.sizes}
        question = Choice(instructions=self.instructions, criteria=dict(known))
        found = self.model.invoke({"state": signals.said, "questions": {_QUESTION: question}}).choices[_QUESTION]
        return RouteChoice(found.choice, f"the decision model is sure of it to {found.confidence:.0%}")


class PolicyDecisionModel(BaseDecisionModel):
    """A route's policy as a decision model: it chooses a size by plain signals, at once, and asks no model.

        classifier = PolicyDecisionModel()
        sizes = {"light": ModelChoice(light, "what asks little"), "heavy": ModelChoice(heavy, "all else")}
        ModelRouterMiddleware(choices=sizes, instructions="", classifier=classifier)

    Labels are sizes, smallest first, and criteria are for people. ``policy`` is as ``Route`` takes it.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    model: str = "policy"
    """The name of it, in traces."""
    policy: Callable[[Any], Any] = default_policy
    """The policy: a function of ``Signals`` that returns a ``Choice``."""

    @property
    def _provider(self) -> str:
        return PROVIDER

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        answers: dict[str, Answer] = {}
        for name, question in questions.items():
            if not isinstance(question, Choice):
                raise InputError(
                    f"questions: a policy chooses a size, and {name!r} is a {type(question).__name__}. Expected a "
                    "Choice whose labels are sizes, or another decision model: GemmaDecisionModel."
                )
            sizes = tuple(question.criteria)
            signals = conversation_signals(_as_messages(state)).signals(
                sizes, None, tools=0, forced=False, structured=False
            )
            chosen = checked_choice(self.policy(signals), sizes).size
            shares = {size: float(size == chosen) for size in sizes}
            answers[name] = ChoiceAnswer(type="choice", choice=chosen, probabilities=shares, confidence=1.0)
        return ClassifierResponse(model=self.model, answers=answers)

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return self._classify(state, questions)  # which takes microseconds, if the policy does


def _as_messages(state: State) -> list[BaseMessage]:
    if isinstance(state, BaseMessage):
        return [state]
    if isinstance(state, Sequence) and not isinstance(state, str) and all(isinstance(m, BaseMessage) for m in state):
        return [each for each in state if isinstance(each, BaseMessage)]
    return [HumanMessage(state if isinstance(state, str) else json.dumps(state, default=str))]
