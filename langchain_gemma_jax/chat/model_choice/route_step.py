"""The choice of a step's model: the one that was named, or the one that a route's policy chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage

from langchain_gemma_jax.chat.asking.route_decision import RouteDecision
from langchain_gemma_jax.chat.history.generated_ids import ConversationMemory, conversation_memory
from langchain_gemma_jax.chat.history.history import History
from langchain_gemma_jax.chat.model_choice.conversation_signals import conversation_signals
from langchain_gemma_jax.routing import Choice, Route, Signals
from langchain_gemma_jax.routing.route import AUTO

if TYPE_CHECKING:
    from langchain_gemma_jax.chat.answering.outcome import Outcome
    from langchain_gemma_jax.chat.asking.options import Options


def routed(options: Options, messages: Sequence[BaseMessage], history: History) -> Options:
    """Return the options with a model that can be loaded: the one that was named, or the one that the route chooses.

    ``history``: the same messages, as dialects take them.
    """
    route, named = options.route, options.model
    if route is None:
        return options
    last = _last(route, messages, history)
    if named == AUTO:
        choice = route.choose(_signals(route, last, options, messages))
    elif named in route.sizes:
        choice = Choice(named, "named by the caller")
    else:
        return options
    step = RouteDecision(choice.size, route.sizes[choice.size], choice.reason, last, chosen=named == AUTO)
    return options.on(step)


def escalated(outcome: Outcome) -> Options | None:
    """Return the options of a larger model, if it should answer instead; None if the answer is taken."""
    options, answer, done = outcome.options, outcome.answer, outcome.done
    route, step = options.route, options.step
    if route is None or step is None or options.model_was_named or (larger := route.larger(step.size)) is None:
        return None
    if answer.invalid:
        cut_off = any(each.unfinished for each in answer.invalid) and not done.complete
        reason = f"a call of {step.size} " + ("was cut off" if cut_off else "could not be understood")
    elif (sure := right(outcome, step.size, route)) < route.enough:
        reason = f"{step.size} was sure of its {'call' if answer.calls else 'answer'} to {sure:.0%} only"
    else:
        return None
    gave_up = (*step.gave_up, step.size)
    return options.on(RouteDecision(larger, route.sizes[larger], reason, step.last, gave_up=gave_up))


def may_escalate(options: Options) -> bool:
    """Return True if a larger size may replace a call of this one: until the call is whole, it cannot be shown."""
    route, step = options.route, options.step
    if route is None or step is None or options.model_was_named:
        return False
    return bool(options.tools) and route.larger(step.size) is not None


def is_judged(options: Options) -> bool:
    """Return True if the likelihood of the answer's tokens is needed, for a judge."""
    route, step = options.route, options.step
    if route is None or step is None or options.model_was_named or (judge := route.judge(step.size)) is None:
        return False
    return judge.words is not None or bool(options.tools) or options.answer is not None


def right(outcome: Outcome, size: str, route: Route) -> float:
    """Return the likelihood that an answer of this size is right; 1 if the size has no judge."""
    judge = route.judge(size)
    if judge is None:
        return 1.0
    calls = bool(outcome.answer.calls) or outcome.options.answer is not None
    return judge.right(sum(each.logprob for each in outcome.done.logprobs), calls=calls)


def remember(options: Options, digest: bytes, where: ConversationMemory) -> None:
    """Remember which model gave the last message of the conversation with this digest."""
    if options.step is not None:
        where.answered.keep(digest, options.step.model)


def _last(route: Route, messages: Sequence[BaseMessage], history: History) -> str | None:
    """Return the size that gave the conversation's last answer: the answer says so, or it is remembered."""
    for number in range(len(messages) - 1, -1, -1):
        message = messages[number]
        if isinstance(message, AIMessage):
            named = message.response_metadata.get("model_name")
            known = named if isinstance(named, str) else conversation_memory().answered.get(history.digests[number])
            return route.name_of(known)
    return None


def _signals(route: Route, last: str | None, options: Options, messages: Sequence[BaseMessage]) -> Signals:
    seen = conversation_signals(messages)
    resident, switch = _memory(route, last, options, seen.tokens)
    return seen.signals(
        route.names,
        last,
        tools=0 if options.choice == "none" else len(options.tools),
        forced=options.choice not in {"auto", "none"},
        structured=options.answer is not None,
        judged=route.judged,
        resident=resident,
        switch_s=switch,
    )


def _memory(
    route: Route, last: str | None, options: Options, tokens: int
) -> tuple[frozenset[str], Mapping[str, float]]:
    """Return which sizes are in memory, and about how long each would take until it can go on."""
    from langchain_gemma_jax.engine.api.process import engine

    known = {name: engine().status(model, **options.how_to_load.arguments()) for name, model in route.sizes.items()}
    found = {name: status for name, status in known.items() if status is not None}
    resident = frozenset(name for name, status in found.items() if status.resident)
    costs = {
        name: (0.0 if status.resident else status.load_s) + (0.0 if name == last else tokens * status.read_s)
        for name, status in found.items()
    }
    return resident, costs
