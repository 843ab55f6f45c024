"""From tokens to what a caller sees: text, the end, and the next draft. Plain Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_gemma_jax.engine.request import FinishReason, Piece, Request, TokenLogprobs


@dataclass(frozen=True)
class End:
    """Why a request is over, and what ended it if something in particular did."""

    reason: FinishReason
    stop: str | int | None = None


def accept(request: Request, tokens: Sequence[int], logprobs: Sequence[TokenLogprobs] = ()) -> End | None:
    """Take these tokens into a request's context, one after the other; deliver them. Gives its end, if they end it.

    Tokens behind the end are not taken.
    """
    if request.first_token_at is None:
        request.first_token_at = time.monotonic()
    taken, text, end = [], "", None
    for token in tokens:
        request.context.append(token)
        taken.append(token)
        shown, stop = request.stops.push(request.decoder.push(token))
        text += shown
        if stop is not None:
            end = End(FinishReason.STOP, stop)
        elif token in request.stop_ids:
            end = End(FinishReason.STOP, token)
        elif request.room <= 0:
            end = End(FinishReason.LENGTH)
        if end is not None:
            break
    if end is not None and not isinstance(end.stop, str):
        # What was held back is text after all, unless the last half of a character completes a stop string.
        shown, stop = request.stops.push(request.decoder.finish())
        text += shown
        if stop is None:
            text += request.stops.finish()
        else:
            end = End(FinishReason.STOP, stop)
    request.text.append(text)
    details = tuple(logprobs[: len(taken)])
    request.logprobs.extend(details)
    if request.streamed:
        request.mailbox.put(Piece(tuple(taken), text, details))
    return end


def draft(request: Request, tokens: Sequence[int]) -> None:
    """See whether the text repeats itself, and guess how it goes on."""
    lookup = request.lookup
    if lookup is None:
        return
    lookup.extend(tokens)
    # The last token that there is room for needs no draft: it comes with the one before.
    request.draft = lookup.propose()[: max(0, request.room - 1)]
