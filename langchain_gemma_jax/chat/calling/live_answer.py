"""An answer as it comes, or whole. A larger model's may replace it before anything of it was shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import Protocol, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage

from langchain_gemma_jax.chat.answering.outcome import Outcome
from langchain_gemma_jax.chat.answering.protocol_events import ProtocolEvents
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.call import Call, ended
from langchain_gemma_jax.chat.calling.starting import astart, beside, start
from langchain_gemma_jax.chat.model_choice.route_step import escalated, may_escalate
from langchain_gemma_jax.dialects import Event, TextDelta, ThoughtDelta
from langchain_gemma_jax.engine.requests.clock import Clock
from langchain_gemma_jax.engine.requests.request import Piece, TokenLogprobs
from langchain_gemma_jax.errors import EngineError

T = TypeVar("T")


class Shown(Protocol[T]):
    """The form in which an answer is shown: chunks of a message, or events."""

    def of(self, events: Iterable[Event], probabilities: Iterable[TokenLogprobs]) -> list[T]:
        """Return what a piece of the answer adds."""

    def broken(self) -> list[T]:
        """Return what completes the output after an error ended the answer."""

    def last(self, outcome: Outcome) -> list[T]:
        """Return the rest of the answer, and how it ended."""


class HeldBack:
    """The calls of a model that a larger one may replace. They are shown once it is clear that it does not.

    Text is shown at once and cannot be taken back, so after text no larger model takes over.
    """

    def __init__(self, options: Options) -> None:
        self.shown = not may_escalate(options)
        self._calling = False
        self._events: list[Event] = []
        self._probabilities: list[TokenLogprobs] = []

    def take(
        self, events: Sequence[Event], probabilities: Sequence[TokenLogprobs]
    ) -> tuple[Sequence[Event], Sequence[TokenLogprobs]]:
        """Take a piece of the answer; return what can be shown of it, and of what was held back."""
        if self.shown:
            return events, probabilities
        self._events += events
        self._probabilities += probabilities
        for event in events:
            if not isinstance(event, TextDelta | ThoughtDelta):
                self._calling = True
            elif event.text.strip() and not self._calling:
                self.shown = True
        return self.rest() if self.shown else ((), ())

    def rest(self) -> tuple[Sequence[Event], Sequence[TokenLogprobs]]:
        """Return what is held back, and forget it."""
        found = self._events, self._probabilities
        self._events, self._probabilities = [], []
        return found

    def larger(self, outcome: Outcome) -> Options | None:
        """Return the options of a larger model, if it has to answer instead and nothing was shown yet."""
        return None if self.shown else escalated(outcome)


def stream(
    messages: Sequence[BaseMessage], options: Options, clock: Clock, shown_by: Callable[[Call], Shown[T]]
) -> Iterator[T]:
    """Show an answer while it comes. The errors are those of ``start``, and of the engine."""
    larger: Options | None = options
    while larger is not None:
        call = start(messages, larger, clock)
        shown, held = shown_by(call), HeldBack(call.options)
        try:
            for piece in call.generation:
                yield from shown.of(*held.take(call.take(piece), piece.logprobs))
            done = call.generation.result()
        except EngineError:  # its time was up, or it was cancelled: a call that broke off is none
            yield from shown.broken()
            raise
        outcome = call.finish(done, streamed=True)
        larger = held.larger(outcome)
    yield from shown.of(*held.rest())
    yield from shown.last(outcome)


async def astream(
    messages: Sequence[BaseMessage], options: Options, clock: Clock, shown_by: Callable[[Call], Shown[T]]
) -> AsyncGenerator[T, None]:
    """Show an answer while it comes, as ``stream`` does, asynchronously."""
    larger: Options | None = options
    while larger is not None:
        call = await astart(messages, larger, clock)
        shown, held = shown_by(call), HeldBack(call.options)
        try:
            async with aclosing(cast("AsyncGenerator[Piece, None]", aiter(call.generation))) as pieces:
                async for piece in pieces:
                    for each in shown.of(*held.take(call.take(piece), piece.logprobs)):
                        yield each
            done = await call.generation
        except EngineError:
            for each in shown.broken():
                yield each
            raise
        finish = partial(call.finish, done, streamed=True)
        outcome = await beside(finish) if call.ends_slowly else finish()
        larger = held.larger(outcome)
    for each in [*shown.of(*held.rest()), *shown.last(outcome)]:
        yield each


def as_events(message_id: str, call: Call) -> ProtocolEvents:
    """Return the form of LangChain's protocol: events, under the id of the answer's message."""
    return ProtocolEvents(message_id, call.options.model, call.spells_logprobs_with)


_LONG_ANSWER = 2048  # tokens from which on an answer is put together in a thread, beside the event loop


async def awhole_answer(messages: Sequence[BaseMessage], asked: Options, clock: Clock) -> AIMessage:
    """Return an answer when all of it is there. The errors are those of ``astart``, and of the engine."""
    options = cast("Options | None", asked)
    while options is not None:
        call = await astart(messages, options, clock)
        done = await call.generation
        short = done.generated_tokens < _LONG_ANSWER and not call.ends_slowly
        found, options = ended(call, done) if short else await beside(ended, call, done)
    return found
