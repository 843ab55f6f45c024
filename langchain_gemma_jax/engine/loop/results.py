"""Results of dispatches: requests take their tokens, and go on or end. For the owner thread."""

from __future__ import annotations

import time

from langchain_gemma_jax.engine.device.programs import NO_TOKEN
from langchain_gemma_jax.engine.loop.failures import Failures, no_number
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Request, TokenLogprobs
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.engine.steps.in_flight import NewTokens, collect
from langchain_gemma_jax.engine.steps.postprocess import End
from langchain_gemma_jax.engine.steps.runner import Runner


class Results:
    """Processes the results of dispatches, in the order of dispatching."""

    def __init__(self, work: WorkInHand, endings: RequestEndings, failures: Failures) -> None:
        self._work, self._endings, self._failures = work, endings, failures

    def bring_home(self, keep: int) -> None:
        """Process the results of all dispatches but the last ``keep``."""
        flights = self._work.flights
        while len(flights) > keep:
            flight = flights.popleft()
            runner = self._work.runner_of(flight.requests[0])
            try:
                found = collect(flight, runner.device)
            except Exception as error:  # noqa: BLE001
                self._failures.fail(error, flight.requests)
                return
            for new in found:
                if new.request in self._work.scheduler.running:
                    self._deliver(new, runner)

    def go_on(self, request: Request, end: End | None = None, *, illegal: bool = False) -> End | None:
        """Append the tokens that a request's grammar forces. Return the request's end, if there is one now.

        If there were any, or if a token was illegal, the results of dispatches in flight are of no use.
        """
        before, metrics = request.generated, self._work.metrics
        end = postprocess.go_on(request, end)
        forced = request.generated - before
        metrics.generated_tokens += forced
        metrics.forced_tokens += forced
        metrics.illegal_tokens += illegal
        if forced or illegal:
            request.begin_epoch()
        return end

    def _deliver(self, new: NewTokens, runner: Runner) -> None:
        request, tokens = new.request, new.tokens
        if not_a_number := NO_TOKEN in tokens:
            tokens = tokens[: tokens.index(NO_TOKEN)]
        before = request.generated
        end = postprocess.accept(request, tokens, _details(new)) if tokens else None
        got = request.generated - before
        self._count(new, got)
        if not_a_number:  # no conversation may continue from it: a NaN spreads even from masked positions
            self._endings.drop_kv(request)
        else:
            runner.learn(request)
        if end is None and not_a_number:
            self._endings.finish(request, no_number(request))
        elif (end := self.go_on(request, end, illegal=end is None and got < len(tokens))) is not None:
            compiled = self._work.compiles.compiles - request.progress.compiles_before
            self._endings.finish(request, request.completion(end.reason, end.stop, time.monotonic(), compiled))
        else:
            if got < len(tokens):
                runner.draw_again(request)
            postprocess.draft(request)

    def _count(self, new: NewTokens, got: int) -> None:
        """Count the tokens that a request took, and the accepted ones of its draft."""
        request, metrics = new.request, self._work.metrics
        metrics.generated_tokens += got
        if new.drafted:
            accepted = min(new.accepted, got)  # tokens after the end do not count
            request.progress.drafted += new.drafted
            request.progress.accepted += accepted
            metrics.drafted_tokens += new.drafted
            metrics.accepted_tokens += accepted
            if request.lookup is not None:
                request.lookup.record(new.drafted, new.accepted)


def _details(new: NewTokens) -> list[TokenLogprobs]:
    sampling = new.request.asked.sampling
    most = len(sampling.scored) or sampling.top_logprobs
    return [
        TokenLogprobs(token, logprob, tuple(zip(ids, values, strict=True))[:most])
        for token, (logprob, ids, values) in zip(new.tokens, new.logprobs, strict=False)
    ]
