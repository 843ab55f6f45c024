"""One call: from messages to a prompt that the engine works on, and from there to events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_gemma_jax.chat.answering.answer import AnswerBuilder
from langchain_gemma_jax.chat.answering.cut_off import AnswerLimits
from langchain_gemma_jax.chat.answering.event_reader import ArgumentCheck, EventReader
from langchain_gemma_jax.chat.answering.messages_out import whole
from langchain_gemma_jax.chat.answering.outcome import Outcome
from langchain_gemma_jax.chat.asking.options import Options, name_source
from langchain_gemma_jax.chat.calling.ready_model import ReadyModel, engine_prompt, media_tokens, ready_model
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.chat.model_choice.route_step import escalated, remember, routed
from langchain_gemma_jax.dialects import (
    Event,
    Invalid,
    Message,
    RenderedPrompt,
)
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.events import StepRouted
from langchain_gemma_jax.engine.base.guards import Asking
from langchain_gemma_jax.engine.requests.clock import Clock, Steps
from langchain_gemma_jax.engine.requests.request import Completion, Piece
from langchain_gemma_jax.errors import GemmaJaxError

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.models.tokenizer import Tokenizer

_LONG, _MANY = 100_000, 1000  # characters and messages of a conversation


class AwaitedModel:
    """A model that is still being loaded. The caller takes its ``steps``, or calls ``cancel``."""

    def __init__(self, first: Future[Any], rest: Steps[Served]) -> None:
        self._first, self._rest = first, rest

    def steps(self) -> Steps[Served]:
        """Yield what has to be waited for until the model is loaded, then return the model."""
        yield self._first
        return (yield from self._rest)

    def cancel(self) -> None:
        """Stop waiting for the model."""
        self._rest.close()


class CallStart:
    """One call, before the engine works on it."""

    def __init__(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> None:
        self._messages, self._options, self._clock = messages, options, clock
        self._spoken: Sequence[Message] = ()
        clock.parts.now("waiting to begin")

    def begin(self) -> Call | AwaitedModel:
        """Read the messages and choose the model. If it is loaded, submit the call to the engine."""
        self._clock.parts.now("getting ready")
        from langchain_gemma_jax.engine.api.process import engine

        self._spoken = conversation(self._messages)
        if self._options.route is not None:
            self._options = routed(self._options, self._messages, self._spoken)
        options = self._options
        if (step := options.step) is not None and step.chosen:
            switched = step.last not in {None, step.size}
            engine().events.publish(StepRouted(step.size, switched=switched, escalated=bool(step.gave_up)))
        asks = Asking(options.app, options.guards)
        arriving = engine().arriving(options.model, options.how_to_load, self._clock, asks)
        steps = _named(arriving, options.model)
        try:
            return AwaitedModel(next(steps), steps)
        except StopIteration as there:
            return self.submit(there.value)

    def submit(self, served: Served) -> Call:
        """Submit the call to the engine, for a model that is loaded."""
        from langchain_gemma_jax.engine.api.process import engine

        clock, options, spoken = self._clock, self._options, self._spoken
        clock.parts.now("encoding the prompt")
        model = ready_model(served, options)
        prompt, encoded = model.prompt(options.told(spoken), options)
        clock.parts.now("compiling the grammar")
        sampling, limits = model.sampling(prompt, encoded, options)
        generation = engine().submit(
            served,
            engine_prompt(encoded),
            sampling,
            scope=options.scope,
            system=encoded.system,
            app=options.app,
            guards=options.guards,
            timeout=clock.left,
        )
        generation.on(clock)
        check = ArgumentCheck.of(options, sampling.grammar)
        return Call(generation, model, spoken, prompt, options, limits, check, media_tokens(encoded))


class Call:
    """An answer on its way: what the engine delivers, as events."""

    def __init__(
        self,
        generation: Generation,
        model: ReadyModel,
        spoken: Sequence[Message],
        prompt: RenderedPrompt,
        options: Options,
        limits: AnswerLimits,
        check: ArgumentCheck,
        media: Mapping[str, int],
    ) -> None:
        self.generation = generation
        self.options = options
        self._model = model
        self._spoken = spoken
        self._prompt = prompt
        self._limits = limits
        self._check = check
        self._media = media
        self._reader = EventReader(model.dialect.parser(in_thought=prompt.in_thought), model.tokenizer.control_name)
        self._answer = AnswerBuilder()
        self._characters = sum(len(text) for message in spoken for text in message.texts)

    @property
    def ends_slowly(self) -> bool:
        """True if ``finish`` takes too long for an event loop: it hashes the whole conversation."""
        return self._characters > _LONG or len(self._spoken) > _MANY

    def cancel(self) -> None:
        """Stop the answer."""
        self.generation.cancel()

    @property
    def spells_logprobs_with(self) -> Tokenizer | None:
        """The tokenizer if the caller asked for log-probabilities; else None."""
        return self._model.tokenizer if self.options.shows_logprobs else None

    def take(self, piece: Piece) -> list[Event]:
        """Return what is new in a piece of the answer."""
        return self._told(self._reader.take(piece.ids, piece.decoded, piece.text))

    def finish(self, done: Completion, *, streamed: bool) -> Outcome:
        """End the call and return what came of it. The answer's ids are remembered.

        ``streamed``: its pieces were taken one by one. Otherwise all of the answer is taken now.
        """
        broken = isinstance(done.stop, str)
        events = [] if streamed else self._reader.take(done.ids, done.decoded, done.text)
        reason = self._limits.reason(done)
        events += [_explained(event, reason) for event in self._reader.finish(None if broken else done.text)]
        events = self._told(events)
        answer = self._answer.answer()
        remembered, options = self._model.remembered, self.options
        remember(options, [*self._spoken, answer.message], remembered)
        if not answer.invalid:  # those come back as words
            told = [*options.told(self._spoken), answer.message]
            ids = _said(done) if broken else done.ids
            remembered.answers_of(self._model.served.model).keep(options.scope, self._model.dialect.name, told, ids)
        tokenizer, rest = self._model.tokenizer, tuple(events)
        return Outcome(options, self._prompt, self._limits, tokenizer, done, answer, rest, self._media)

    def _told(self, events: list[Event]) -> list[Event]:
        checked = self._check.checked(events)
        self._answer.add(checked)
        return checked


def ended(call: Call, done: Completion) -> tuple[AIMessage, Options | None]:
    """Return the answer of a call that ended; and, if a larger model has to answer instead, its options."""
    outcome = call.finish(done, streamed=False)
    larger = None if outcome.options.route is None else escalated(outcome)
    return whole(outcome), larger


def _named(steps: Steps[Served], model: str) -> Steps[Served]:
    """Pass on the steps of a load. If it fails, the error says so if the environment named the model."""
    try:
        return (yield from steps)
    except GemmaJaxError as error:
        name_source(error, model)
        raise


def _explained(event: Event, reason: str | None) -> Event:
    """Return the event; if it is a call that was cut off, with the reason in its error."""
    if reason is None or not isinstance(event, Invalid) or not event.unfinished:
        return event
    return replace(event, error=f"The call was cut off, and is not to be executed: {reason}")


def _said(done: Completion) -> tuple[int, ...]:
    """Return the ids of what was shown before a stop string; none if that begins inside a token."""
    length, wanted = 0, len(done.text)
    for number, text in enumerate(done.decoded):
        longer = length + len(text)
        if longer > wanted:
            return done.ids[:number] if length == wanted else ()
        length = longer
    return ()
