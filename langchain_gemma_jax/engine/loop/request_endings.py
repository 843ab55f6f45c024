"""Ends of requests, and new beginnings, with the release of their memory. For the owner thread."""

from __future__ import annotations

import time

from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Completion, OnDevice, Request, Stage
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import DeviceFailedError

WORTH_MEASURING = 16  # tokens of a prompt: with fewer, the time per token is too uncertain


class RequestEndings:
    """Ends requests: it releases their memory, sends their outcomes to callers, and publishes records."""

    def __init__(self, work: WorkInHand) -> None:
        self._work = work

    def finish(self, request: Request, outcome: Completion | Exception) -> None:
        """End a request. Its conversation stays until the bytes are needed."""
        work = self._work
        if request not in work.scheduler:
            return
        if (runner := work.models.runners.get(request.asked.model)) is not None:
            _release(runner, request)
            runner.device.answered |= isinstance(outcome, Completion)
        work.scheduler.remove(request)
        if isinstance(outcome, Completion):
            self._learn_cost(request, outcome)
            self._keep_answer(request, outcome)
        self.answer(request, outcome)

    def answer(self, request: Request, outcome: Completion | Exception) -> None:
        """Send a request's outcome to its caller. From then on, its generation keeps nothing alive on the device."""
        self._work.inbox.begun(request)
        request.on_device = OnDevice()
        self._work.events.publish(request.finished(outcome, time.monotonic()))
        request.mailbox.put(outcome, last=True)

    def refuse_one(self, request: Request, error: Exception) -> None:
        """End a request that could not be taken in. Only this one gets the error."""
        self._work.raised.append(error)
        failure = DeviceFailedError(f"The request could not be begun: {type(error).__name__}: {error}")
        failure.__cause__ = error
        self.answer(request, failure)

    def refuse(self, known: KnownModel, error: Exception) -> None:
        """End the requests that wait for a model which cannot be loaded."""
        for request in list(self._work.scheduler.waiting):
            if request.asked.model is known.served:
                self.finish(request, again(error))

    def drop_kv(self, request: Request) -> None:
        """Drop a request's conversation."""
        if (resident := request.on_device.resident) is not None:
            kv_store = self._work.runner_of(request).kv_store
            kv_store.release(request)
            kv_store.held.drop(resident)

    def start_again(self, request: Request) -> None:
        """Release a running request's memory, and make it the next to be admitted."""
        _release(self._work.runner_of(request), request)
        request.begin_epoch()
        request.progress.stages.become(Stage.QUEUED)
        request.progress.draft, request.progress.wants_state = (), False
        self._work.scheduler.put_back(request)

    def _keep_answer(self, request: Request, done: Completion) -> None:
        """Keep an answer for the drafts of its scope."""
        known = self._work.models.known.get(request.asked.model)
        if known is not None and request.drafter is not None and done.ids:
            known.drafts.add(request.asked.scope, request.asked.prompt.ids, done.ids, request.drafter)

    def _learn_cost(self, request: Request, done: Completion) -> None:
        """Add a request's prefill time to the measured time of reading tokens."""
        known, read = self._work.models.known.get(request.asked.model), done.prompt_tokens - done.reused_tokens
        if known is not None and read >= WORTH_MEASURING and done.ids:
            known.host_store.read.add(done.timings.prefill_s, read)


def _release(runner: Runner, request: Request) -> None:
    runner.kv_store.release(request)
    runner.rows.release(request)
