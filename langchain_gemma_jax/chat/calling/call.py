"""One call: from messages to a prompt that the engine works on, and from there to events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage

from langchain_gemma_jax.chat.answering.answer import Answer, AnswerBuilder
from langchain_gemma_jax.chat.answering.answer_metadata import ending, spelled, usage
from langchain_gemma_jax.chat.answering.answer_parts import WholeAnswer
from langchain_gemma_jax.chat.answering.event_reader import ArgumentCheck, EventReader
from langchain_gemma_jax.chat.answering.outcome import Outcome
from langchain_gemma_jax.chat.answering.search_calls import SearchCalls
from langchain_gemma_jax.chat.asking.options import Options
from langchain_gemma_jax.chat.calling.ready_model import Prepared, ReadyModel, engine_prompt, media_tokens, ready_model
from langchain_gemma_jax.chat.calling.served_model import arriving, submit
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.history.messages_in import conversation
from langchain_gemma_jax.chat.history.searches import Search
from langchain_gemma_jax.chat.model_choice.route_step import escalated, remember, routed
from langchain_gemma_jax.dialects import Event, Invalid
from langchain_gemma_jax.engine.api.generation import Generation
from langchain_gemma_jax.engine.base.events import StepRouted
from langchain_gemma_jax.engine.requests.clock import Clock, Steps
from langchain_gemma_jax.engine.requests.request import Completion, Piece, TokenLogprobs

if TYPE_CHECKING:
    from langchain_gemma_jax.engine.residency.served import Served


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

    def __init__(
        self, messages: Sequence[BaseMessage], options: Options, clock: Clock, searches: tuple[Search, ...] = ()
    ) -> None:
        self.clock = clock
        self.begun: Call | AwaitedModel | None = None  # what ``begin`` gave
        self._messages, self._options, self._searches = messages, options, searches
        self._history: History | None = None
        clock.parts.now("waiting to begin")

    def instead(self, options: Options) -> CallStart:
        """Return the call of a larger model, which answers the same conversation instead."""
        larger = CallStart(self._messages, options, self.clock, self._searches)
        larger._history = self._history
        return larger

    def after(self, outcome: Outcome) -> CallStart | None:
        """Return the call that goes on with the tools that this one searched for; None if it did not only search."""
        if not outcome.continues or self._history is None:
            return None
        options, search = outcome.options, outcome.searches[-1]
        if options.max_tokens is not None:
            left = max(1, options.max_tokens - outcome.done.generated_tokens)
            options = options.model_copy(update={"max_tokens": left})
        following = CallStart(self._messages, options, self.clock, outcome.searches)
        following._history = History(options.scope, [*self._history.messages, *search.messages])
        return following

    def begin(self) -> Call | AwaitedModel:
        """Read the messages and choose the model. If it is loaded, submit the call to the engine."""
        self.clock.parts.now("getting ready")
        from langchain_gemma_jax.engine.api.process import engine

        if self._history is None:
            self._history = History(self._options.scope, conversation(self._messages))
            if self._options.route is not None:
                self._options = routed(self._options, self._messages, self._history)
        step = self._options.step
        if step is not None and step.chosen and not (self._searches or self._options.ahead):
            switched = step.last not in {None, step.size}
            engine().events.publish(StepRouted(step.size, switched=switched, escalated=bool(step.gave_up)))
        steps = arriving(self._options, self.clock)
        try:
            self.begun = AwaitedModel(next(steps), steps)
        except StopIteration as there:
            self.begun = self.submit(there.value)
        return self.begun

    def submit(self, served: Served) -> Call:
        """Submit the call to the engine, for a model that is loaded."""
        options, history = self._options, self._history
        if history is None:
            raise ValueError("expected a call that was begun: begin() reads its messages")
        model = ready_model(served, options)
        asked = model.prepare(history, options, self.clock.parts)
        generation = submit(
            served, engine_prompt(asked.encoded), asked.sampling, options, self.clock, asked.encoded.system
        )
        return Call(generation, model, history, options, asked, self._searches)


class Call:
    """An answer on its way: what the engine delivers, as events."""

    def __init__(
        self,
        generation: Generation,
        model: ReadyModel,
        history: History,
        options: Options,
        asked: Prepared,
        searches: tuple[Search, ...] = (),
    ) -> None:
        self.generation, self.options = generation, options
        self._before, self._hidden = searches, SearchCalls(options.tools)
        self._model, self._history, self._asked = model, history, asked
        control_name = model.tokenizer.control_name
        parser = model.dialect.parser(in_thought=asked.rendered.in_thought, tools=asked.tools)
        self._reader = EventReader(parser, control_name)
        self._check = ArgumentCheck.of(options, asked.sampling.grammar, asked.unfound)
        self._answer = AnswerBuilder()

    def cancel(self) -> None:
        """Stop the answer."""
        self.generation.cancel()

    def logprobs(self, tokens: Iterable[TokenLogprobs]) -> list[dict[str, Any]]:
        """Return log-probabilities in OpenAI's form; none if the caller did not ask for them."""
        return spelled(self._model.tokenizer, tokens) if self.options.shows_logprobs else []

    def take(self, piece: Piece) -> list[Event]:
        """Return what is new in a piece of the answer."""
        return self._shown(self._reader.take(piece.ids, piece.decoded, piece.text))

    def finish(self, done: Completion, *, streamed: bool) -> Outcome:
        """End the call and return what came of it. The answer's ids are remembered.

        ``streamed``: its pieces were taken one by one. Otherwise all of the answer is taken now.
        """
        broken = isinstance(done.stop, str)
        limits, options = self._asked.limits, self.options
        events = [] if streamed else self._reader.take(done.ids, done.decoded, done.text)
        reason = limits.reason(done)
        events += [_explained(event, reason) for event in self._reader.finish(None if broken else done.text)]
        events = self._shown(events)
        answer = self._answer.answer()
        self._remember(answer, _shown_ids(done) if broken else done.ids)
        media = media_tokens(self._asked.encoded)
        return Outcome(
            options,
            self._asked.rendered,
            limits,
            self._model.tokenizer,
            done,
            answer,
            tuple(events),
            media,
            self._before,
            self._hidden.searched(answer, done.generated_tokens, self.logprobs(done.logprobs)),
        )

    def _remember(self, answer: Answer, ids: Sequence[int]) -> None:
        """Remember what the answer was generated as, and by which model."""
        options, model = self.options, self._model
        if options.step is None and answer.invalid:
            return
        digest = self._history.followed_by(answer.message)
        remember(options, digest, model.remembered)
        if not answer.invalid:  # those come back as words
            model.remembered.answers_of(model.served.model).keep(model.dialect.name, digest, ids)

    def _shown(self, events: list[Event]) -> list[Event]:
        checked = self._check.checked(events)
        self._answer.add(checked)
        return self._hidden.without(checked)


def ended(start: CallStart, call: Call, done: Completion) -> tuple[WholeAnswer, CallStart | None]:
    """Return the answer of a call that ended; and the call that follows.

    That is one of a larger model, which has to answer instead, or one that goes on with the tools that were found.
    """
    outcome = call.finish(done, streamed=False)
    larger = None if outcome.options.route is None else escalated(outcome)
    logprobs = [*chain.from_iterable(each.logprobs for each in outcome.before), *call.logprobs(done.logprobs)]
    whole = WholeAnswer(outcome.shown, usage(outcome), ending(outcome), logprobs)
    return whole, start.after(outcome) if larger is None else start.instead(larger)


def _explained(event: Event, reason: str | None) -> Event:
    """Return the event; if it is a call that was cut off, with the reason in its error."""
    if reason is None or not isinstance(event, Invalid) or not event.unfinished:
        return event
    return replace(event, error=f"The call was cut off, and is not to be executed: {reason}")


def _shown_ids(done: Completion) -> tuple[int, ...]:
    """Return the ids of what was shown before a stop string; none if that begins inside a token."""
    length, wanted = 0, len(done.text)
    for number, text in enumerate(done.decoded):
        longer = length + len(text)
        if longer > wanted:
            return done.ids[:number] if length == wanted else ()
        length = longer
    return ()
