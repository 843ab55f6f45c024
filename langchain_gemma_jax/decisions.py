"""``GemmaDecisionModel``: Gemma as a LangChain decision model. Its answers are probabilities that were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, log
from typing import TYPE_CHECKING, Any, Self

from pydantic import ConfigDict, SecretStr

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
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

import langchain_gemma_jax.model_errors  # noqa: F401  our errors are LangChain's too
from langchain_gemma_jax.chat.asking.options import SETTINGS, Options, constructor_arguments, options
from langchain_gemma_jax.chat.asking.questions import AskedQuestion, asked_question
from langchain_gemma_jax.chat.calling.label_scores import AwaitedScores, LabelScores, begin_scores
from langchain_gemma_jax.chat.calling.starting import abegin, begin
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.provider import PROVIDER
from langchain_gemma_jax.routing import Choice as RouteChoice
from langchain_gemma_jax.routing import Signals, default_policy

_QUESTION, _ASKED = "size", "asked"
_MOST_DIVIDED = 20.0


class GemmaDecisionModel(BaseDecisionModel):
    """Gemma as a model that decides: yes or no, one of several labels, or a level of a scale.

        model = GemmaDecisionModel(model="google/gemma-3-1b-it")
        asked = {"urgent": Noul(instructions="Is this urgent?")}
        model.invoke({"state": "Payments fail since Monday.", "questions": asked}).nouls["urgent"].noul

    Each question is read once, behind what it is about, and how likely each answer is at that place is the result. So
    an answer costs what reading costs, and questions about the same share it. ``confidence`` is the probability
    of the most likely answer.

    Raises:
        InputError: a setting is not possible. The message says what is.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    model: str
    """An embedded model, a folder, a GGUF file, or a model's id on the Hub. By default GEMMA_JAX_MODEL says which."""
    calibration: float = 1.0
    """Above 0: what differences of the model's scores are divided by. Above 1 it is less sure of itself. A constant of
    the checkpoint, which ``calibrated`` measures where right answers are known."""
    timeout: float | None = None
    """Seconds until ``DeadlineError``, loading included. None: no limit."""
    max_context: int | None = None
    """Tokens that a question and what it is about may have together. None: what the model allows."""
    keep_alive: float | None = None
    """Seconds that the model stays in memory when nobody uses it. None: until the memory is needed."""
    scope: str = ""
    """A tenant's name. What different scopes read shares nothing."""
    app: str = ""
    """The name of the application that asks: reports, metrics and guards count by it."""
    dialect: str | None = None
    """The chat format. None: the one that the checkpoint was trained in."""
    dtype: str | None = None
    """The weights' dtype: "bfloat16", "float32" or "float16". None: the checkpoint's own."""
    weights: str | None = None
    """How a dense checkpoint's matrices are stored: "int8" or "int4". None: as they are in its files."""
    activations: str | None = None
    """The numbers that packed matrices are multiplied by: "int8", rounded first, for faster tokens. None: "float32"."""
    devices: int | str | None = None
    """Among how many devices the model is divided: a number, or "auto", the fewest on which it fits. None: one."""
    revision: str | None = None
    """A branch, tag or commit of the model on the Hub. None: its main branch."""
    token: SecretStr | None = None
    """A token of the Hugging Face Hub. None: that of the environment variable HF_TOKEN, or of ``hf auth login``."""

    if not TYPE_CHECKING:  # type checkers know the fields as arguments, and are left to it

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
        """A copy whose calibration is the one by which known answers are the most likely together.

        Args:
            known: what a question is about, the question, and its right answer: True or False for yes or no, the name
                of a choice, or the level of a scale, from 0 on. Fifty of the kind that will be asked are enough.

        Raises:
            InputError: there are none, or an answer is none of its question's.
        """
        if not known:
            raise InputError("known: expected some questions with their right answers, found none.")
        rights = [right_answer(question, right) for _, question, right in known]
        as_read = self.model_copy(update={"calibration": 1.0})
        asked = [ClassifierRequest(state=state, questions={_ASKED: question}) for state, question, _ in known]
        found = [_shares(response) for response in as_read.batch(asked)]
        return self.model_copy(update={"calibration": best_calibration(list(zip(found, rights, strict=True)))})

    def _response(self, questions: Mapping[str, Question], found: Sequence[LabelScores]) -> ClassifierResponse:
        answers: dict[str, Answer] = {
            name: answer(question, probabilities(each.logprobs, self.calibration))
            for (name, question), each in zip(questions.items(), found, strict=True)
        }
        read, written = sum(each.read for each in found), sum(each.generated for each in found)
        usage = UsageMetadata(
            input_tokens=read,
            output_tokens=written,
            total_tokens=read + written,
            input_token_details=InputTokenDetails(cache_read=sum(each.reused for each in found)),
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
    """Return how likely each answer is, if it is one of these.

    >>> probabilities([-1.0, -1.0], 1.0)
    [0.5, 0.5]
    """
    best = max(logprobs)
    shares = [exp((each - best) / calibration) for each in logprobs]
    return [share / sum(shares) for share in shares]


def right_answer(question: Question, right: object) -> int:
    """Return the place of a question's right answer among all that there are.

    Raises:
        InputError: it is none of them.
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


def _shares(found: ClassifierResponse) -> list[float]:
    """Return the probability of each answer to the one question, in its order."""
    for choice in found.choices.values():
        return list(choice.probabilities.values())
    for score in found.scores.values():
        return list(score.probabilities.values())
    (yes,) = found.nouls.values()
    return [yes.noul, 1 - yes.noul]


def best_calibration(known: Sequence[tuple[Sequence[float], int]]) -> float:
    """Return what scores are to be divided by, so that the right answers are the most likely together.

    The surprise at them is convex in the inverse of that number, so thirds of where it can lie are given up in turns.
    Where all are right it would be none at all, and where chance is better, endless: it stays between 1/20 and 20.

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


def answer(question: Question, found: Sequence[float]) -> NoulAnswer | ChoiceAnswer | ScoreAnswer:
    """Return the answer to a question, of the probabilities of all that there are."""
    if isinstance(question, Choice):
        named = dict(zip(question.criteria, found, strict=True))
        best = max(named, key=named.__getitem__)
        return ChoiceAnswer(type="choice", choice=best, probabilities=named, confidence=named[best])
    if isinstance(question, Score):
        levels = dict(enumerate(found))
        return ScoreAnswer(
            type="score",
            score=sum(level * share for level, share in levels.items()),
            legend=dict(enumerate(question.criteria)),
            probabilities=levels,
            confidence=max(found),
        )
    return NoulAnswer(type="noul", noul=found[0])


@dataclass(frozen=True)
class DecidedRoute:
    """A policy for ``Route``: a decision model chooses the size by what somebody said.

        sizes = {"light": "Small talk, and one call of a tool.", "heavy": "Several steps, or many tools."}
        Route(light="./270m", heavy="./4b", policy=DecidedRoute(GemmaDecisionModel(model="./270m"), sizes))

    ``criteria`` says of each size of the route what it is for. Behind a tool's result nobody is asked: the size that
    called goes on, or a larger one if its call failed.
    """

    model: BaseDecisionModel
    criteria: Mapping[str, str]
    instructions: str = "Which of these suits the request best?"

    def __call__(self, signals: Signals) -> RouteChoice:
        """Choose a size."""
        if signals.last is not None and (signals.results or signals.failed):
            return default_policy(signals)
        known = {size: self.criteria.get(size) for size in signals.sizes}
        question = Choice(instructions=self.instructions, criteria=dict(known))
        found = self.model.invoke({"state": signals.said, "questions": {_QUESTION: question}}).choices[_QUESTION]
        return RouteChoice(found.choice, f"the decision model is sure of it to {found.confidence:.0%}")
