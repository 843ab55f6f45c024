"""Handling of failures of a dispatch or of the loop: which requests end, and which memory is freed.

For the owner thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

import jax

from langchain_gemma_jax.engine.device.device_access import out_of_memory
from langchain_gemma_jax.engine.host.error_names import has_no_user_text, named
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.residency.model_evictor import ModelEvictor
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, who_holds_what
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import ClosedError, DeviceFailedError, DeviceMemoryError, GuardError, HostLostError

_log = logging.getLogger(__name__)


class Failures:
    """Handles exceptions on the owner thread: requests start again or end, and the engine goes on."""

    def __init__(self, work: WorkInHand, endings: RequestEndings, evictor: ModelEvictor) -> None:
        self._work, self._endings, self._evictor = work, endings, evictor

    def drop_half_done(self, runner: Runner) -> None:
        """Drop all idle conversations after an error while memory was assigned: one of them may be inconsistent."""
        owned = {request.on_device.resident for request in self._work.scheduler.running}
        for resident in runner.kv_store.index.residents:
            resident.leased = resident in owned
        runner.kv_store.evict_idle()

    def fail(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """Handle the error of a dispatch for these requests."""
        self._work.raised.append(error)
        runner = self._work.runner_of(requests[0])
        if runner.kv_store.held.arrays.is_lost:
            self._drop_lost(runner)
        if isinstance(error, GuardError | DeviceMemoryError | HostLostError):  # no program ran, or none can any more
            for request in requests:
                self._endings.finish(request, error)
        elif self._work.inbox.closing:  # JAX may be shutting down, so the error says nothing about the programs
            for request in requests:
                self._endings.finish(request, closed())
        elif out_of_memory(error):
            self._fail_for_memory(error, requests)
        elif any(array.is_deleted() for array in jax.tree.leaves(runner.params)):
            self._fail_for_weights(runner)
        elif runner.library.distrust(error):
            self._begin_again(runner)
        else:
            self._fail_model(runner, error, requests)

    def _drop_lost(self, runner: Runner) -> None:
        """Drop all conversations of a model, whose pool went with a program that failed."""
        for request in self._running_in(runner):
            request.on_device.resident = None
        runner.kv_store.held.clear()

    def _running_in(self, runner: Runner) -> set[Request]:
        return {request for request in self._work.scheduler.running if self._work.runner_of(request) is runner}

    def _drop_flights(self, concerned: set[Request]) -> None:
        """Drop the dispatches in flight of these requests."""
        others = [flight for flight in self._work.flights if not concerned & set(flight.requests)]
        self._work.flights.clear()
        self._work.flights.extend(others)

    def _begin_again(self, runner: Runner) -> None:
        """Start a model's requests again, from the tokens that they have. Its programs are made again."""
        concerned = self._running_in(runner)
        self._drop_flights(concerned)
        for request in sorted(concerned, key=lambda r: -r.asked.number):
            request.on_device.drop_knobs()
            self._endings.start_again(request)
        runner.forget_feed()
        runner.kv_store.held.clear()

    def _fail_for_weights(self, runner: Runner) -> None:
        """End the requests of a served model that was closed by the caller. Other models are not affected."""
        work = self._work
        model = next(served for served, each in work.models.runners.items() if each is runner)
        for request in [*work.scheduler.running, *work.scheduler.waiting]:
            if request.asked.model == model:
                self._endings.finish(request, ClosedError("The model was closed. Unload it, and load it again."))
        runner.close()

    def _fail_for_memory(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """Evict everything idle, and start the affected requests again, once.

        All of the model's begin again: the pool may have gone with the program.
        """
        work = self._work
        runner = work.runner_of(requests[0])
        concerned = self._running_in(runner) | set(requests)
        self._drop_flights(concerned)
        runner.forget_feed()
        self._drop_lost(runner)
        for request in sorted(concerned, key=lambda r: -r.asked.number):
            request.on_device.drop_knobs()
            request.progress.memory_failures += request in requests
            if request.progress.memory_failures > 1:
                self._endings.finish(request, full_twice(error, request, self._evictor.statuses()))
            elif request in work.scheduler.running:
                self._endings.start_again(request)
        self._evictor.evict_idle("the device's memory was full", runner.device.placement)
        work.metrics.memory_retries += 1

    def _fail_model(self, runner: Runner, error: Exception, others: tuple[Request, ...]) -> None:
        """Handle an unexpected error of a model's program: its requests end. Those of other models go on."""
        concerned = self._running_in(runner) | set(others)
        self._drop_flights(concerned)
        self._end(sorted(concerned, key=lambda request: request.asked.number), error, "every request of its model")
        _forget_feeds([runner])
        runner.kv_store.held.clear()
        self._evictor.publish_changes()

    def fail_all(self, error: Exception, others: tuple[Request, ...] = ()) -> None:
        """Handle an unexpected error of the loop: every request in flight ends, and all conversations are dropped."""
        work = self._work
        work.raised.append(error)
        work.flights.clear()
        self._end([*work.scheduler.running, *others], error, "every request")
        self.forget_feeds()
        for runner in work.models.runners.values():
            runner.kv_store.held.clear()
        self._evictor.publish_changes()

    def _end(self, requests: list[Request], error: Exception, whose: str) -> None:
        may_show = has_no_user_text(error) or not concerns_several_tenants(requests)
        shown = f"{type(error).__name__}: {error}" if may_show else named(error)
        failure = DeviceFailedError(f"A device call failed and {whose} in flight was ended: {shown}")
        failure.__cause__ = error if may_show else None
        for request in requests:
            self._endings.finish(request, failure)

    def forget_feeds(self) -> None:
        """Drop what runners kept on the device for the next step."""
        _forget_feeds(self._work.models.runners.values())

    def give_up_everything(self) -> None:
        """Drop all work and models, because the thread ends."""
        self._work.scheduler.running.clear()
        self._work.scheduler.waiting.clear()
        self._work.flights.clear()
        self._evictor.end()


def _forget_feeds(runners: Iterable[Runner]) -> None:
    for runner in runners:
        runner.forget_feed()
        if runner.media is not None:
            runner.media.forget()


def full_twice(error: Exception, request: Request, holders: tuple[ModelStatus, ...]) -> DeviceMemoryError:
    """Return the error for a request that found the device's memory full, also after everything idle was evicted."""
    number, context = request.asked.number, len(request.progress.context)
    found = DeviceMemoryError(
        f"The device's memory was full twice while request {number} ran ({context} tokens), also after "
        "everything idle was evicted. Use a shorter context or a smaller model, or "
        f"leave more memory free: configure(kv_bytes=...). In memory: {who_holds_what(holders)}.",
        tuple(str(holder) for holder in holders if holder.nbytes),
    )
    found.__cause__ = error
    return found


def concerns_several_tenants(requests: Iterable[Request]) -> bool:
    """Return True if these requests are of several scopes, so that a shared error may contain another tenant's data."""
    return len({request.asked.scope for request in requests}) > 1


def ended_by(error: BaseException, requests: Iterable[Request]) -> ClosedError:
    """Return the error for all waiting requests when another error ends the engine's thread. That one is logged."""
    if not isinstance(error, SystemExit):  # threads do not report it
        _log.critical("the engine's thread was ended by %s", named(error))
    ended = ClosedError(f"The engine's thread was ended by {type(error).__name__}. engine() starts a new one.")
    ended.__cause__ = None if concerns_several_tenants(requests) else error
    return ended


def no_number(request: Request) -> DeviceFailedError:
    """Return the error for a request whose scores are NaN."""
    context = len(request.progress.context)
    return DeviceFailedError(
        f"The model gave NaN scores after {context} tokens. What it had read was dropped. If other "
        "prompts end so too, its weights hold NaN, or are too large for their dtype: check the files, or load it with "
        'dtype="float32".'
    )


def too_large(runner: Runner, request: Request, models: tuple[ModelStatus, ...]) -> DeviceMemoryError:
    """Return the error for a request that can never get the memory that it needs."""
    budget, context = runner.kv_store.policy.budget, len(request.progress.context)
    room = min(budget, runner.kv_store.shared.room())
    return DeviceMemoryError(
        f"A conversation of {context} tokens does not fit the {room} bytes that conversations may take, even alone. "
        "Shorten it, or allow more: configure(kv_bytes=...) or configure(memory_budget=...). "
        f"In memory: {who_holds_what(models)}.",
        tuple(str(model) for model in models if model.nbytes),
    )
