"""Processing of new tokens: the text for the caller, the end of the answer, and the next draft. Plain Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_gemma_jax.engine.drafting.chain import Chain
from langchain_gemma_jax.engine.requests.request import FinishReason, Piece, Request, Stage, TokenLogprobs
from langchain_gemma_jax.engine.requests.request_constraint import RequestConstraint


@dataclass(frozen=True)
class End:
    """The end of a request: its reason, and the stop string or id that ended it, if one did."""

    reason: FinishReason
    stop: str | int | None = None


def accept(
    request: Request, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs] = (), *, forced: bool = False
) -> End | None:
    """Add tokens to a request's context, one after the other, and deliver them. Return its end, if they end it.

    Tokens after the end are dropped, and so are an illegal token and all after it.
    """
    now = time.monotonic()
    if request.progress.first_token_at is None:
        request.progress.first_token_at = now
    if request.progress.chosen_at is None and not forced:
        request.progress.chosen_at = now
    if not forced:
        request.progress.stages.become(Stage.WRITING)
    taken: list[int] = []
    decoded: list[str] = []
    parts: list[str] = []
    end: End | None = None
    for token in tokens:
        if not _allowed(request, token):
            break
        request.progress.context.append(token)
        request.progress.token_times.append(now)
        taken.append(token)
        decoded.append(request.decoder.push(token))
        shown, stop = _shown(request, decoded[-1])
        parts.append(shown)
        end = _end(request, token, stop)
        if end is not None:
            break
    if end is not None and not isinstance(end.stop, str) and not _may_close(request, end):
        shown, end = _rest(request, end)
        parts.append(shown)
    _deliver(request, taken, decoded, "".join(parts), tuple(logprobs[: len(taken)]))
    return end


def go_on(request: Request, end: End | None = None) -> End | None:
    """Append the tokens that the grammar forces; at the request's end, only if they complete the text.

    They are not in the KV yet, so the accepted tokens must be added to the index before. ``end`` is the end by the
    accepted tokens. Return the end, if there is one now.
    """
    rule = request.constraint
    if rule is None:
        return end
    if end is None and not rule.cut_off and (tokens := rule.forced()):
        before = request.generated
        end = accept(request, tokens, _certain(request, tokens), forced=True)
        request.progress.forced += request.generated - before
    if end is None and not rule.cut_off:
        rule.prepare()
    if end is None and rule.cut_off:
        end = End(FinishReason.LENGTH)
    return _closed(request, rule, end) if end is not None and _may_close(request, end) else end


def _may_close(request: Request, end: End) -> bool:
    """Return True if a limit ends a text with a grammar, so that forced closing tokens can still be appended."""
    return end.reason is FinishReason.LENGTH and request.constraint is not None


def _closed(request: Request, rule: RequestConstraint, end: End) -> End:
    """End a text that is cut off. Only forced tokens that complete it are still appended."""
    tokens = rule.closing()
    decoded: list[str] = []
    parts: list[str] = []
    now = time.monotonic()
    for token in tokens:
        rule.take(token)
        request.progress.context.append(token)
        request.progress.token_times.append(now)
        decoded.append(request.decoder.push(token))
        parts.append(_shown(request, decoded[-1])[0])
    request.progress.forced += len(tokens)
    shown, end = _rest(request, End(FinishReason.STOP) if rule.finished else end)
    _deliver(request, tokens, decoded, "".join([*parts, shown]), _certain(request, tokens))
    return end


def _certain(request: Request, tokens: Sequence[int]) -> tuple[TokenLogprobs, ...]:
    """Return the log-probabilities of forced tokens, if the request reports any."""
    return tuple(TokenLogprobs(token, 0.0, ()) for token in tokens) if request.asked.sampling.measured else ()


def _rest(request: Request, end: End) -> tuple[str, End]:
    """Return the text that was held back, and the end, which changes if the text completes a stop string."""
    shown, stop = _shown(request, request.decoder.finish())
    return (shown + request.stops.finish(), end) if stop is None else (shown, End(FinishReason.STOP, stop))


def _allowed(request: Request, token: int) -> bool:
    rule = request.constraint
    return rule is None or rule.take(token)


def _shown(request: Request, text: str) -> tuple[str, str | None]:
    """Return the text that can be passed on, and the stop string that ends it; None where a grammar applies."""
    if request.constraint is None or request.constraint.is_free:
        return request.stops.push(text)
    return request.stops.finish() + text, None


def _end(request: Request, token: int, stop: str | None) -> End | None:
    rule = request.constraint
    if stop is not None:
        return End(FinishReason.STOP, stop)
    if token in request.asked.stop_ids and (rule is None or rule.ends_with(token)):
        return End(FinishReason.STOP, token)
    if rule is not None and rule.finished:
        return End(FinishReason.STOP)
    return End(FinishReason.LENGTH) if request.room <= 0 else None


def _deliver(
    request: Request, tokens: Sequence[int], decoded: Sequence[str], text: str, details: tuple[TokenLogprobs, ...]
) -> None:
    request.progress.text.append(text)
    request.progress.decoded.extend(decoded)
    request.progress.logprobs.extend(details)
    if request.streamed and (tokens or text):
        request.mailbox.put(Piece(tuple(tokens), text, details, tuple(decoded)))


def draft(request: Request, chain: Chain | None = None, alike: int = 1) -> None:
    """Draft the next tokens, if that pays.

    Args:
        request: the request.
        chain: the model's drafter on the device, if there is one to use.
        alike: the requests that share a step, this one included.
    """
    drafter = request.drafter
    if drafter is None:
        return
    legal = None if request.constraint is None else request.constraint.legal
    # The last token that there is room for needs no draft: verification gives one token more than the draft.
    request.progress.draft = drafter.propose(request.progress.context, request.room - 1, legal, chain, alike)
    request.progress.wants_state = drafter.wants_state
