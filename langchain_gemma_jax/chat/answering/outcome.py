"""A call that is over: all that its messages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_gemma_jax.chat.answering.answer import Answer
from langchain_gemma_jax.chat.answering.cut_off import AnswerLimits
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.dialects import Event, RenderedPrompt
from langchain_gemma_jax.engine.requests.request import Completion

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
