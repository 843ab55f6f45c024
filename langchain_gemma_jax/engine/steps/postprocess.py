"""From tokens to what a caller sees: text, the end, and the next draft. Plain Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_gemma_jax.engine.requests.request import FinishReason, Piece, Request, Stage, TokenLogprobs
from langchain_gemma_jax.engine.requests.request_constraint import RequestConstraint


@dataclass(frozen=True)
class End:
    """Why a request is over, and what ended it if something in particular did."""

    reason: FinishReason
    stop: str | int | None = None


def accept(
    request: Request, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs] = (), *, forced: bool = False
) -> End | None:
    """Take these tokens into a request's context, one after the other; deliver them. Gives its end, if they end it.

    Tokens behind the end are not taken, and neither is one that its grammar does not allow, with all behind it.
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
    """Append the tokens to which its grammar leaves no alternative; at its end, only if the text becomes whole by them.

    None of them is in the KV yet: first the index has to learn of those that were accepted. ``end`` is what these
    came to. Gives the end, if there is one now.
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
    """Whether it breaks off where a grammar holds, so that the brackets which have to come still can."""
    return end.reason is FinishReason.LENGTH and request.constraint is not None


def _closed(request: Request, rule: RequestConstraint, end: End) -> End:
    """End a text that breaks off. What has no alternative and makes it whole is still part of it, and nothing else."""
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
    """Return the log-probabilities of tokens without any alternative, where such are reported."""
    return tuple(TokenLogprobs(token, 0.0, ()) for token in tokens) if request.asked.sampling.measured else ()


def _rest(request: Request, end: End) -> tuple[str, End]:
    """What was held back, which is text after all, unless the last half of a character completes a stop string."""
    shown, stop = _shown(request, request.decoder.finish())
    return (shown + request.stops.finish(), end) if stop is None else (shown, End(FinishReason.STOP, stop))


def _allowed(request: Request, token: int) -> bool:
    rule = request.constraint
    return rule is None or rule.take(token)


def _shown(request: Request, text: str) -> tuple[str, str | None]:
    """What can be shown of a text, and the stop string that ends it. Where a grammar holds, none does."""
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


def draft(request: Request, tokens: Sequence[int]) -> None:
    """See whether the text repeats itself, and guess how it goes on."""
    lookup = request.lookup
    if lookup is None:
        return
    lookup.extend(tokens)
    # The last token that there is room for needs no draft: it comes with the one before.
    request.progress.draft = lookup.propose()[: max(0, request.room - 1)]
    if request.progress.draft and request.constraint is not None:
        request.progress.draft = request.constraint.legal(request.progress.draft)
