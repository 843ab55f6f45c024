"""Results of dispatches: requests take their tokens, and go on or end. For the owner thread."""

from __future__ import annotations

import time

from langchain_gemma_jax.engine.loop.failures import Failures, no_number
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.engine.steps.postprocess import End
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.engine.steps.taken import Taken, take


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
                found = take(flight, runner.device, self._work.scheduler.running)
            except Exception as error:  # noqa: BLE001
                self._failures.fail(error, flight.requests)
                return
            for taken in found:
                self._deliver(taken, runner)

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

    def _deliver(self, taken: Taken, runner: Runner) -> None:
        request = taken.request
        self._count(taken)
        if taken.broken:  # a NaN spreads even from masked positions
            self._work.metrics.nan_scores += 1
            self._endings.drop_kv(request)
        else:
            runner.learn(request)
        if taken.end is None and taken.broken:
            self._endings.finish(request, no_number(request))
        elif (end := self.go_on(request, taken.end, illegal=taken.end is None and taken.more)) is not None:
            compiled = self._work.compiles.compiles - request.progress.compiles_before
            self._endings.finish(request, request.completion(end.reason, end.stop, time.monotonic(), compiled))
        else:
            if taken.more:
                runner.draw_again(request)
            alike = self._work.scheduler.alike(request)
            # With more requests, drafts are not checked: guesses would be for nothing.
            chain = None if runner.chains is None or alike > Scheduler.DRAFT_WITH else runner.chains.of(request)
            postprocess.draft(request, chain, alike)

    def _count(self, taken: Taken) -> None:
        """Count the tokens that a request took, and the accepted ones of its draft."""
        request, metrics = taken.request, self._work.metrics
        metrics.generated_tokens += taken.count
        if taken.drafted:
            accepted = min(taken.accepted, taken.count)  # tokens after the end do not count
            request.progress.drafted += taken.drafted
            request.progress.accepted += accepted
            metrics.drafted_tokens += taken.drafted
            metrics.accepted_tokens += accepted
            if request.drafter is not None:
                source = request.drafter.record(taken.drafted, taken.accepted, accepted)
                metrics.add_draft(source, taken.drafted, accepted)
        if len(self._work.scheduler.running) == 1:
            self._note_cost(taken)

    def _note_cost(self, taken: Taken) -> None:
        """Note the time of a pass for a request that is alone, which is what drafts have to be worth."""
        times, drafter = taken.request.progress.token_times, taken.request.drafter
        if drafter is None or not taken.rows or not 0 < taken.count < len(times):
            return
        seconds = times[-1] - times[-1 - taken.count]
        passes = 1 if taken.drafted else taken.count  # a loop's dispatch has several
        drafter.took(taken.rows, seconds / passes)
