"""The tokens that requests take of a dispatch: fetched from the device, and accepted one after the other."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.programs import NO_TOKEN
from langchain_gemma_jax.engine.requests.request import Request, TokenLogprobs
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.engine.steps.in_flight import InFlight, NewTokens, collect
from langchain_gemma_jax.engine.steps.postprocess import End


@dataclass(frozen=True)
class Taken:
    """The part of a dispatch's tokens that a request took."""

    request: Request
    count: int
    end: End | None  # by these tokens
    more: bool  # others came behind them, which are of no use
    broken: bool  # a score was no number: no conversation may go on from there
    rows: int  # of the pass that gave them: the newest token and the drafted ones; 0: a chunk
    drafted: int
    accepted: int  # of the draft, by the dispatch


def take(flight: InFlight, device: DeviceAccess, running: Container[Request]) -> list[Taken]:
    """Wait for a dispatch. Those of its requests that still run take what they got of it."""
    return [_taken(new) for new in collect(flight, device) if new.request in running]


def _taken(new: NewTokens) -> Taken:
    request, tokens = new.request, new.tokens
    if broken := NO_TOKEN in tokens:
        tokens = tokens[: tokens.index(NO_TOKEN)]
    before = request.generated
    end = postprocess.accept(request, tokens, _details(new)) if tokens else None
    count = request.generated - before
    return Taken(request, count, end, count < len(tokens), broken, new.rows, new.drafted, new.accepted)


def _details(new: NewTokens) -> list[TokenLogprobs]:
    sampling = new.request.asked.sampling
    most = len(sampling.scored) or sampling.top_logprobs
    return [
        TokenLogprobs(token, logprob, tuple(zip(ids, values, strict=True))[:most])
        for token, (logprob, ids, values) in zip(new.tokens, new.logprobs, strict=False)
    ]
