"""What happens when a dispatch, or the loop itself, fails: who is told, and what is given up. For the owner thread."""

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
    """Gets the owner thread over what raises: requests start again or end, and the engine goes on."""

    def __init__(self, work: WorkInHand, endings: RequestEndings, evictor: ModelEvictor) -> None:
        self._work, self._endings, self._evictor = work, endings, evictor

    def drop_half_done(self, runner: Runner) -> None:
        """Something raised while memory was given out: an idle conversation may be in pieces, so none stays."""
        owned = {request.on_device.resident for request in self._work.scheduler.running}
        for resident in runner.kv_store.index.residents:
            resident.leased = resident in owned
        runner.kv_store.evict_idle()

    def fail(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """A dispatch for these requests went wrong."""
        self._work.raised.append(error)
        runner = self._work.runner_of(requests[0])
        if isinstance(error, GuardError | DeviceMemoryError | HostLostError):  # nothing ran, or nothing will any more
            for request in requests:
                self._endings.finish(request, error)
        elif self._work.inbox.closing:  # JAX may be being taken down. What fails of that tells nothing of the programs
            for request in requests:
                self._endings.finish(request, closed())
        elif out_of_memory(error):
            self._fail_for_memory(error, requests)
        elif any(array.is_deleted() for array in jax.tree.leaves(runner.params)):
            self._fail_for_weights(runner)
        elif runner.library.distrust():
            self._begin_again(runner)
        else:
            self.fail_all(error, requests)

    def _begin_again(self, runner: Runner) -> None:
        """The model's programs are made anew. Its requests start again, behind the tokens that they have."""
        work = self._work
        concerned = {request for request in work.scheduler.running if work.runner_of(request) is runner}
        others = [flight for flight in work.flights if not concerned & set(flight.requests)]
        work.flights.clear()
        work.flights.extend(others)
        for request in sorted(concerned, key=lambda r: -r.asked.number):
            request.on_device.drop_knobs()
            self._endings.start_again(request)
        runner.forget_feed()
        runner.kv_store.held.clear()

    def _fail_for_weights(self, runner: Runner) -> None:
        """Somebody closed a model that is served. Others are not concerned."""
        work = self._work
        model = next(served for served, each in work.models.runners.items() if each is runner)
        for request in [*work.scheduler.running, *work.scheduler.waiting]:
            if request.asked.model == model:
                self._endings.finish(request, ClosedError("The model was closed. Unload it, and load it again."))
        runner.close()

    def _fail_for_memory(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """Free what is idle, and let those concerned start again, once. What they had donated is lost."""
        work, concerned = self._work, set(requests)
        while more := [f for f in work.flights if concerned & set(f.requests)]:
            concerned.update(*(flight.requests for flight in more))
            for flight in more:
                work.flights.remove(flight)
        runner = work.runner_of(requests[0])
        runner.forget_feed()
        for request in sorted(concerned, key=lambda r: -r.asked.number):
            self._endings.drop_kv(request)
            request.on_device.drop_knobs()
            request.progress.memory_failures += 1
            if request.progress.memory_failures > 1:
                self._endings.finish(request, full_twice(error, request, self._evictor.statuses()))
            elif request in work.scheduler.running:
                self._endings.start_again(request)
        self._evictor.evict_idle("the device's memory was full", runner.device.placement)
        work.metrics.memory_retries += 1

    def fail_all(self, error: Exception, others: tuple[Request, ...] = ()) -> None:
        """Something raised that nobody expected: every request in flight ends, and all memory is given up."""
        work = self._work
        work.raised.append(error)
        ended = [*work.scheduler.running, *others]
        may_show = has_no_user_text(error) or not concerns_several_tenants(ended)
        told = f"{type(error).__name__}: {error}" if may_show else named(error)
        failure = DeviceFailedError(f"A device call failed and every request in flight was ended: {told}")
        failure.__cause__ = error if may_show else None
        work.flights.clear()
        for request in ended:
            self._endings.finish(request, failure)
        self.forget_feeds()
        for runner in work.models.runners.values():
            runner.kv_store.held.clear()
        self._evictor.publish_changes()

    def forget_feeds(self) -> None:
        """Forget what runners kept for the next step of requests that are over."""
        for runner in self._work.models.runners.values():
            runner.forget_feed()
            if runner.media is not None:
                runner.media.forget()

    def give_up_everything(self) -> None:
        """The thread ends: nothing stays on the device."""
        self._work.scheduler.running.clear()
        self._work.scheduler.waiting.clear()
        self._work.flights.clear()
        self._evictor.end()


def full_twice(error: Exception, request: Request, holders: tuple[ModelStatus, ...]) -> DeviceMemoryError:
    """The error of a request for which the device's memory was full, and full again when everything idle had gone."""
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
    """Whether an error that all of them get may be about what another tenant sent."""
    return len({request.asked.scope for request in requests}) > 1


def ended_by(error: BaseException, requests: Iterable[Request]) -> ClosedError:
    """The error of all who wait when the engine's thread ends by another one, which is said in the log."""
    if not isinstance(error, SystemExit):  # which no thread reports
        _log.critical("the engine's thread was ended by %s", named(error))
    ended = ClosedError(f"The engine's thread was ended by {type(error).__name__}. engine() starts a new one.")
    ended.__cause__ = None if concerns_several_tenants(requests) else error
    return ended


def no_number(request: Request) -> DeviceFailedError:
    """The error of a request whose scores are NaN."""
    context = len(request.progress.context)
    return DeviceFailedError(
        f"The model gave NaN scores after {context} tokens. What it had read was dropped. If other "
        "prompts end so too, its weights hold NaN, or are too large for their dtype: check the files, or load it with "
        'dtype="float32".'
    )


def too_large(runner: Runner, request: Request, models: tuple[ModelStatus, ...]) -> DeviceMemoryError:
    """The error of a request that can never have the memory that it needs."""
    budget, context = runner.kv_store.policy.budget, len(request.progress.context)
    room = min(budget, runner.kv_store.shared.room())
    return DeviceMemoryError(
        f"A conversation of {context} tokens does not fit the {room} bytes that conversations may take, even alone. "
        "Shorten it, or allow more: configure(kv_bytes=...) or configure(memory_budget=...). "
        f"In memory: {who_holds_what(models)}.",
        tuple(str(model) for model in models if model.nbytes),
    )
