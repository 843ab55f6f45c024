"""A call that is over: all that its messages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.chat.answering.cut_off import AnswerLimits
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.asking.tool_offer import MOST_SEARCHES
from langchain_gemma_jax.chat.history.searches import SEARCH, Search
from langchain_gemma_jax.dialects import Event, RenderedPrompt
from langchain_gemma_jax.engine.requests.request import Completion, FinishReason

if TYPE_CHECKING:
    from langchain_gemma_jax.models.tokenizer import Tokenizer


@dataclass(frozen=True)
class Outcome:
    """One call that is over: what was asked, what was said, and how it ended."""

    options: Options
    prompt: RenderedPrompt
    limits: AnswerLimits
    tokenizer: Tokenizer
    done: Completion
    answer: Answer
    rest: tuple[Event, ...]  # the events that had not been streamed: all, if nothing was
    media_tokens: Mapping[str, int] = field(default_factory=dict)  # of the prompt, by what they stand for
    before: tuple[Search, ...] = ()  # searches for deferred tools that came before this answer, and belong to it
    search: Search | None = None  # the one that this answer asks for

    @property
    def continues(self) -> bool:
        """True if the model only searched for tools, so that it has to go on with what was found."""
        ended = self.done.finish_reason is FinishReason.STOP and not self.answer.invalid
        more = ended and len(self.before) < MOST_SEARCHES
        return self.search is not None and more and all(call.name == SEARCH for call in self.answer.calls)

    @property
    def searches(self) -> tuple[Search, ...]:
        """All searches of the answer."""
        return self.before if self.search is None else (*self.before, self.search)

    @property
    def shown(self) -> Answer:
        """The answer as its message shows it: with the words around its searches, and without their calls."""
        if not self.searches:
            return self.answer
        calls = self.answer.calls
        if self.search is not None:
            calls = tuple(call for call in calls if call.name != SEARCH)
        text = "".join([*(each.text for each in self.before), self.answer.text])
        thinking = "".join([*(each.thinking for each in self.before), self.answer.thinking])
        return Answer(text, thinking, calls, self.answer.invalid)
