"""Log-probabilities of a few words at the beginning of an answer: a model reads the prompt and draws one token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.asking.questions import AskedQuestion
from langchain_gemma_jax.chat.calling.ready_model import ReadyModel, engine_prompt, ready
from langchain_gemma_jax.chat.calling.served_model import submit
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.dialects import EncodedPrompt, Message
from langchain_gemma_jax.engine.base.sampling_options import MAX_TOP_LOGPROBS, Sampling
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.request import Completion
from langchain_gemma_jax.errors import ContextLengthError, InputError, MediaError, UnsupportedModelError

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.api.generation import Generation
    from langchain_gemma_jax.models.tokenizer import Tokenizer


@dataclass(frozen=True)
class LabelScores:
    """The log-probabilities of a question's labels, and what it took to read them."""

    logprobs: tuple[float, ...]
    read: int  # tokens
    reused: int  # of them: they had been read before
    generated: int


class AwaitedScores:
    """A question that a model is reading."""

    def __init__(self, ids: Sequence[int], generations: Sequence[Generation]) -> None:
        self._ids, self._generations = ids, generations

    def result(self) -> LabelScores:
        """Wait for the scores."""
        return self._scores([each.result() for each in self._generations])

    async def aresult(self) -> LabelScores:
        """Wait for the scores, while the event loop goes on."""
        return self._scores([await each for each in self._generations])

    def cancel(self) -> None:
        """Stop the reading."""
        for each in self._generations:
            each.cancel()

    def _scores(self, completions: Sequence[Completion]) -> LabelScores:
        known: Mapping[int, float] = {token: score for done in completions for token, score in done.logprobs[0].top}
        first, *others = completions
        # With many labels, the later requests reuse what the first one read.
        return LabelScores(
            tuple(known[token] for token in self._ids),
            first.prompt_tokens,
            first.reused_tokens,
            sum(done.generated_tokens for done in [first, *others]),
        )


def begin_scores(question: AskedQuestion, options: Options, clock: Clock) -> AwaitedScores:
    """Have the engine read a question.

    Raises:
        UnsupportedModelError: two labels begin with the same token. Others as ``engine().load`` and ``engine().submit``
            have them.
    """
    model = ready(options, clock)
    encoded, ids = _read(question, model, options)
    most = min(options.max_context or model.served.max_context, model.served.max_context)
    if len(encoded.ids) >= most:
        raise ContextLengthError(len(encoded.ids), most - 1, f"take a model with a longer context than {options.model}")
    generations = []
    for at in range(0, len(ids), MAX_TOP_LOGPROBS):
        sampling = Sampling(max_tokens=1, scored=tuple(ids[at : at + MAX_TOP_LOGPROBS]))
        generations.append(submit(model.served, engine_prompt(encoded), sampling, options, clock, encoded.system))
    return AwaitedScores(ids, generations)


def _read(question: AskedQuestion, model: ReadyModel, options: Options) -> tuple[EncodedPrompt, list[int]]:
    """Return a question's prompt, and the token that each of its answers begins with."""
    judge = model.served.model.chat_format.judge
    if judge is not None:
        if question.picture is None:
            raise InputError(
                f"state: expected one picture and nothing else, as an image block or a HumanMessage with one: "
                f"{model.served.name} judges pictures."
            )
        ids = [judge.yes_id, judge.no_id]
        if max(ids) >= (size := model.tokenizer.vocab_size):
            raise UnsupportedModelError(
                f"{model.served.name}: expected the tokens of yes and no ({judge.yes_id} and {judge.no_id}, by its "
                f"config.json) in the vocabulary, found {size} tokens in it. The tokenizer may be another model's."
            )
        return model.judged(judge, question.picture, question.text, options), ids
    if question.picture is not None:
        raise MediaError(
            question.picture.block.at,
            f"{model.served.name} answers questions of words alone. Describe what is in it, or take a ShieldGemma 2, "
            "which judges pictures",
        )
    _, encoded = model.prompt(History(options.scope, [Message.user(question.text)]), options)
    return encoded, label_ids(question.labels, model.tokenizer, model.served.name)


def label_ids(labels: Sequence[str], tokenizer: Tokenizer, name: str) -> list[int]:
    """Return the token that each label begins with.

    Raises:
        UnsupportedModelError: two labels begin with the same token.
    """
    ids = [tokenizer.encode_text(label)[0] for label in labels]
    if len(set(ids)) < len(ids):
        raise UnsupportedModelError(
            f"{name} cannot tell the answers {', '.join(labels)} apart: in its vocabulary two of them begin with the "
            "same token. Take another model for decisions."
        )
    return ids
