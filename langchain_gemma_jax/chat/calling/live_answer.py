"""An answer as it comes, or whole. A larger model's may replace it before anything of it was shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Generic, TypeVar, cast

from langchain_gemma_jax.chat.answering.answer_metadata import ending, usage
from langchain_gemma_jax.chat.answering.answer_parts import AnswerEnd, AnswerPart, Shown, WholeAnswer
from langchain_gemma_jax.chat.answering.outcome import Outcome
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import Call, CallStart, ended
from langchain_gemma_jax.chat.calling.starting import astart, in_thread, start
from langchain_gemma_jax.chat.model_choice.route_step import escalated, may_escalate
from langchain_gemma_jax.dialects import TextDelta, ThoughtDelta
from langchain_gemma_jax.engine.requests.request import Completion, Piece
from langchain_gemma_jax.errors import EngineError

T = TypeVar("T")


class HeldBack:
    """The calls of a model that a larger one may replace. They are shown once it is clear that it does not.

    Text is shown at once and cannot be taken back, so after text no larger model takes over.
    """

    def __init__(self, options: Options) -> None:
        self.shown = not may_escalate(options)
        self._calling = False
        self._parts: list[AnswerPart] = []

    def take(self, part: AnswerPart) -> list[AnswerPart]:
        """Take a part of the answer; return what can be shown of it, and of what was held back."""
        if self.shown:
            return [part]
        self._parts.append(part)
        for event in part.events:
            if not isinstance(event, TextDelta | ThoughtDelta):
                self._calling = True
            elif event.text.strip() and not self._calling:
                self.shown = True
        return self.rest() if self.shown else []

    def put(self, part: AnswerPart) -> None:
        """Hold back one more part."""
        self._parts.append(part)

    def rest(self) -> list[AnswerPart]:
        """Return what is held back, and forget it."""
        found, self._parts = self._parts, []
        return found

    def larger(self, outcome: Outcome) -> Options | None:
        """Return the options of a larger model, if it has to answer instead and nothing was shown yet."""
        return None if self.shown else escalated(outcome)


class LiveAnswer(Generic[T]):
    """What one call's answer adds to what is shown, piece by piece. Threads and event loops wait for the pieces."""

    def __init__(self, call: Call, shown: Shown[T]) -> None:
        self.generation = call.generation
        self._call, self._shown, self._held = call, shown, HeldBack(call.options)
        self._end: AnswerEnd | None = None

    def take(self, piece: Piece) -> list[T]:
        """Return what a piece adds."""
        call = self._call
        part = AnswerPart(call.take(piece), call.logprobs(piece.logprobs), call.options.model)
        return [each for ready in self._held.take(part) for each in self._shown.of(ready)]

    def end(self, done: Completion, start: CallStart) -> CallStart | None:
        """End the call, and return the one that follows; None: this is the answer.

        That is one of a larger model, which answers instead, or one that goes on with the tools that were found.
        """
        outcome = self._call.finish(done, streamed=True)
        if (larger := self._held.larger(outcome)) is not None:
            self._held.rest()  # which is not shown
            return start.instead(larger)
        if (following := start.after(outcome)) is None:
            self._end = AnswerEnd(outcome.rest, usage(outcome), ending(outcome))
        else:
            self._held.put(AnswerPart(outcome.rest, (), self._call.options.model))
        return following

    def rest(self) -> list[T]:
        """Return what is left of an answer that ended."""
        found = [each for part in self._held.rest() for each in self._shown.of(part)]
        return found if self._end is None else [*found, *self._shown.last(self._end)]


def stream(start_of: CallStart, shown: Shown[T]) -> Iterator[T]:
    """Show an answer while it comes. The errors are those of ``start``, and of the engine."""
    following: CallStart | None = start_of
    while following is not None:
        start_of = following
        answer = LiveAnswer(start(start_of), shown)
        try:
            for piece in answer.generation:
                yield from answer.take(piece)
            done = answer.generation.result()
        except EngineError:  # its time was up, or it was cancelled: a call that broke off is none
            yield from shown.broken()
            raise
        following = answer.end(done, start_of)
        yield from answer.rest()


async def astream(start_of: CallStart, shown: Shown[T]) -> AsyncGenerator[T, None]:
    """Show an answer while it comes, as ``stream`` does, asynchronously."""
    following: CallStart | None = start_of
    while following is not None:
        start_of = following
        answer = LiveAnswer(await astart(start_of), shown)
        try:
            async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(answer.generation))) as pieces:
                async for piece in pieces:
                    for each in answer.take(piece):
                        yield each
            done = await answer.generation
        except EngineError:
            for each in shown.broken():
                yield each
            raise
        following = answer.end(done, start_of)
        for each in answer.rest():
            yield each


def whole_answer(start_of: CallStart) -> WholeAnswer:
    """Return an answer when all of it is there. The errors are those of ``start``, and of the engine."""
    while True:
        call = start(start_of)
        try:
            done = call.generation.result()
        finally:
            call.cancel()  # where the waiting is interrupted
        found, following = ended(start_of, call, done)
        if following is None:
            return found
        start_of = following


_LONG_ANSWER = 2048  # tokens from which on an answer is put together in a thread, beside the event loop


async def awhole_answer(start_of: CallStart) -> WholeAnswer:
    """Return an answer when all of it is there, while the event loop goes on."""
    while True:
        call = await astart(start_of)
        done = await call.generation
        short = done.generated_tokens < _LONG_ANSWER
        found, following = ended(start_of, call, done) if short else await in_thread(ended, start_of, call, done)
        if following is None:
            return found
        start_of = following
