"""One call: from messages to a prompt that the engine works on, and from there to events."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.answer import Answer
from langchain_gemma_jax.chat.answers import Conversations, conversations
from langchain_gemma_jax.chat.cut_off import Limits
from langchain_gemma_jax.chat.held import grammar_of
from langchain_gemma_jax.chat.messages_in import conversation
from langchain_gemma_jax.chat.options import Options
from langchain_gemma_jax.chat.reader import Reader
from langchain_gemma_jax.chat.steps import may_escalate, remember, routed
from langchain_gemma_jax.dialects import (
    Dialect,
    Encoded,
    Event,
    Invalid,
    Message,
    ModelFacts,
    Prompt,
    RenderOptions,
    Tool,
    dialect_for,
)
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.events import StepRouted
from langchain_gemma_jax.engine.base.sampling_options import Sampling
from langchain_gemma_jax.engine.requests.clock import Clock, Steps
from langchain_gemma_jax.engine.requests.request import Completion, Piece
from langchain_gemma_jax.errors import ContextLengthError, InputError

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served
    from langchain_gemma_jax.models.tokenizer import Tokenizer


@dataclass(frozen=True)
class Ready:
    """A model that is loaded, and the format that it speaks."""

    served: Served
    dialect: Dialect
    remembered: Conversations = field(repr=False)

    @property
    def tokenizer(self) -> Tokenizer:
        return self.served.model.tokenizer

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool], options: Options) -> tuple[Prompt, Encoded]:
        """What the model reads. Its own answers are read as they were generated, if that is still known."""
        # Where calls are words, only the lack of declarations keeps a model from them.
        shown = tools if options.choice != "none" or self.dialect.opener_is_control else ()
        prompt = self.dialect.render(messages, shown, RenderOptions(thinking=options.thinking))
        known = self.remembered.answers_of(self.served.model).of(options.scope, self.dialect.name, messages)
        return prompt, prompt.encode(self.tokenizer, known)


def ready(options: Options) -> Ready:
    """The model of these options, loaded if it is not yet."""
    from langchain_gemma_jax.engine.api.process import engine

    load = partial(engine().load, options.model, **options.loaded_as)
    return _ready(load() if options.timeout is None else load(timeout=options.timeout), options)


def _ready(served: Served, options: Options) -> Ready:
    from langchain_gemma_jax.engine.api.process import engine

    if options.keep_alive is not None:
        engine().keep_alive(served, options.keep_alive)
    config, tokenizer = served.model.config, served.model.tokenizer
    facts = ModelFacts(config.generation, tokenizer.control_tokens, config.per_layer_input is not None)
    return Ready(served, dialect_for(facts, options.dialect or served.model.spoken), conversations())


class Coming:
    """A model that is not there yet. Somebody has to wait for it, or ``cancel``."""

    def __init__(self, first: Future[Any], rest: Steps[Served]) -> None:
        self._first, self._rest = first, rest

    def steps(self) -> Steps[Served]:
        """What has to be waited for until it is there."""
        yield self._first
        return (yield from self._rest)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self._rest.close()


class Start:
    """A call before the engine works on it."""

    def __init__(self, messages: Sequence[BaseMessage], options: Options, clock: Clock) -> None:
        self._messages, self._options, self._clock = messages, options, clock
        self._spoken: Sequence[Message] = ()
        clock.parts.now("waiting to begin")

    def begin(self) -> Call | Coming:
        """Find out what is asked for, and of whom. Where that model is there, have it answer."""
        self._clock.parts.now("getting ready")
        from langchain_gemma_jax.engine.api.process import engine

        self._spoken = conversation(self._messages)
        self._options = options = routed(self._options, self._messages, self._spoken)
        if (step := options.step) is not None and step.chosen:
            switched = step.last not in {None, step.size}
            engine().events.tell(StepRouted(step.size, switched=switched, escalated=bool(step.gave_up)))
        steps = engine().arriving(options.model, **options.loaded_as, clock=self._clock)
        try:
            return Coming(next(steps), steps)
        except StopIteration as there:
            return self.submit(there.value)

    def submit(self, served: Served) -> Call:
        """Have the engine work on the answer."""
        from langchain_gemma_jax.engine.api.process import engine

        clock, options, spoken = self._clock, self._options, self._spoken
        clock.parts.now("encoding the prompt")
        model = _ready(served, options)
        prompt, encoded = model.prompt(options.told(spoken), options.tools, options)
        clock.parts.now("compiling the grammar")
        sampling = _sampling(model, options, prompt)
        limits = Limits(sampling.max_tokens, _room(model, options, len(encoded.ids)))
        sampling = replace(sampling, max_tokens=limits.most)
        generation = engine().submit(
            model.served, encoded.ids, sampling, scope=options.scope, system=encoded.system, timeout=clock.left
        )
        generation.on(clock)
        return Call(generation, model, spoken, prompt, options, limits)


class Call:
    """An answer on its way: what the engine delivers, as events."""

    def __init__(
        self,
        generation: Generation,
        model: Ready,
        spoken: Sequence[Message],
        prompt: Prompt,
        options: Options,
        limits: Limits,
    ) -> None:
        from langchain_gemma_jax.models.tokenizer import StreamDecoder

        self.generation = generation
        self.model = model
        self.spoken = spoken
        self.prompt = prompt
        self.options = options
        self.limits = limits
        tokenizer = model.tokenizer
        parser = model.dialect.parser(in_thought=prompt.in_thought)
        self._reader = Reader(parser, StreamDecoder(tokenizer), tokenizer.control_name)
        self._events: list[Event] = []

    def cancel(self) -> None:
        """Nobody wants it any more."""
        self.generation.cancel()

    def take(self, piece: Piece) -> list[Event]:
        """What is new."""
        return self._seen(self._reader.take(piece.ids, piece.text))

    def finish(self, done: Completion, *, streamed: bool) -> list[Event]:
        """What is left at the end, which is all if nothing was streamed. The answer's ids are remembered."""
        events = [] if streamed else self._reader.take(done.ids, done.text)
        last = self._reader.finish(complete=not isinstance(done.stop, str))
        events += [_explained(event, self.limits.reason(done)) for event in last]
        self._seen(events)
        answer = self.answer
        remembered = self.model.remembered
        remember(self.options, [*self.spoken, answer.message], remembered)
        if not answer.invalid:  # those come back as words
            ids = _said(self.model.tokenizer, done) if isinstance(done.stop, str) else done.ids
            told = [*self.options.told(self.spoken), answer.message]
            remembered.answers_of(self.model.served.model).keep(self.options.scope, self.model.dialect.name, told, ids)
        return events

    @property
    def answer(self) -> Answer:
        """What was said so far."""
        return Answer.of(self._events)

    def _seen(self, events: list[Event]) -> list[Event]:
        self._events += events
        return events


def _explained(event: Event, reason: str | None) -> Event:
    """Return the event; where it is a call that broke off, with the reason in its error."""
    if reason is None or not isinstance(event, Invalid) or not event.unfinished:
        return event
    return replace(event, error=f"The call was cut off, and is not to be executed: {reason}")


def _sampling(model: Ready, options: Options, prompt: Prompt) -> Sampling:
    """How the answer is sampled, and what ends it."""
    tokenizer, dialect = model.tokenizer, model.dialect
    sampling = options.sampling(model.served.model.generation_defaults, model.served.name)
    stops = [token for name in dialect.stops if (token := tokenizer.control_id(name)) is not None]
    if may_escalate(options):
        sampling = replace(sampling, logprobs=True)
    return replace(sampling, stop_ids=tuple(stops), grammar=grammar_of(options, dialect, prompt))


def _room(model: Ready, options: Options, tokens: int) -> int:
    """How many tokens of an answer there is room for."""
    limit = options.max_context or model.served.max_context
    if limit > model.served.max_context:
        raise InputError(
            f"max_context: {model.served.name} can have up to {model.served.max_context} tokens here; found {limit}. "
            "configure(max_context=...) limits it for the whole process."
        )
    if tokens >= limit:
        raise ContextLengthError(tokens, limit - 1)
    return limit - tokens


def _said(tokenizer: Tokenizer, done: Completion) -> tuple[int, ...]:
    """The ids that stand for what was shown, where a stop string ended it; none if it ended inside a token."""
    from langchain_gemma_jax.models.tokenizer import StreamDecoder

    decoder, length, wanted = StreamDecoder(tokenizer), 0, len(done.text)
    for number, token in enumerate(done.ids):
        longer = length + len(decoder.push(token))
        if longer > wanted:
            return done.ids[:number] if length == wanted else ()
        length = longer
    return ()
