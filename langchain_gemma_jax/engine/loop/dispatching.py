"""Dispatching of scheduled work to the device, or the preparation for it. For the owner thread."""

from __future__ import annotations

from langchain_gemma_jax.engine.base.events import PromptRead
from langchain_gemma_jax.engine.loop.failures import Failures, too_large
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.results import Results
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.residency.model_evictor import ModelEvictor
from langchain_gemma_jax.engine.steps.in_flight import InFlight
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.engine.steps.scheduler import Read, Step, Verify, Work
from langchain_gemma_jax.errors import GuardError


class Dispatching:
    """Dispatches work to the device. If something must be prepared first, the next round schedules again after it."""

    def __init__(
        self, work: WorkInHand, endings: RequestEndings, failures: Failures, results: Results, evictor: ModelEvictor
    ) -> None:
        self._work, self._endings, self._failures = work, endings, failures
        self._results, self._evictor = results, evictor

    def run(self, work: Work) -> bool:
        """Dispatch work. Return True if tokens will come of it; a chunk in the middle of a prompt gives none."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        runner = self._work.runner_of(requests[0])
        runner.device.asked_by = tuple(request.asked for request in requests)
        try:
            if isinstance(work, Read):
                flight = self._read(work.request, runner)
            elif not self._prepare(work, runner):
                return False  # something has changed: the next round schedules again
            elif isinstance(work, Verify):
                flight = runner.verify(work.request)
            else:
                requests, rows = self._share_step(requests, runner)
                flight = runner.step(requests, rows) if requests else None
        except Exception as error:  # noqa: BLE001
            self._failures.fail(error, requests)
            return False
        if flight is not None:
            self._work.flights.append(flight)
        return flight is not None

    def _read(self, request: Request, runner: Runner) -> InFlight | None:
        """Read the next chunk of a request's context, if it can be read now, and tell those who listen."""
        if not self._may_read(request, runner):
            return None
        before, asked, name = request.held, request.asked, getattr(request.asked.model, "name", "")
        flight = runner.read(request)
        if request.held > before:  # else a part of a picture was encoded
            total = len(request.progress.context)
            self._work.events.publish(PromptRead(asked.number, name, asked.scope, asked.app, request.held, total))
        return flight

    def _share_step(self, requests: tuple[Request, ...], runner: Runner) -> tuple[tuple[Request, ...], int]:
        """Return the requests that share this step, and its rows; others come next. No requests: not in this round."""
        scheduler = self._work.scheduler
        together, rows = runner.together(requests, scheduler.alike(requests[0]))
        others = together < len(requests) or not runner.follows(requests, rows)
        if others and any(request.progress.issued for request in requests):
            self._results.bring_home(keep=0)  # only a step of the same rows finds its tokens on the device
            return (), rows
        scheduler.split(requests[together:])
        return requests[:together], rows

    def _may_read(self, request: Request, runner: Runner) -> bool:
        """Return True if a request's context can be read now. If not, it is prepared for a later round."""
        if not self._is_equipped(request, runner):
            return False
        if request.asked.prompt.media and runner.media_are_there(request) is not True:
            self._endings.start_again(request)  # its encoder has left memory since it began: it waits for it again
            return False
        return self._fits(request, runner)

    def _is_equipped(self, request: Request, runner: Runner) -> bool:
        """Return True if a request's adapter is on the device. Should it be lost, the request starts again."""
        if (there := runner.rows.there(request)) is not True:
            self._endings.start_again(request)
        return there is True

    def _fits(self, request: Request, runner: Runner) -> bool:
        """Return True if a request has the pages that its next chunk is written to. If not, it is given them."""
        resident = request.on_device.resident
        if resident is None:
            return False
        tokens = runner.chunks.next_end(request)
        if runner.kv_store.grow(resident, tokens):
            return True
        self._results.bring_home(keep=0)
        self._make_way(request, resident, tokens)
        return False

    def _prepare(self, work: Step | Verify, runner: Runner) -> bool:
        """Make sure that a step has room to write and a known start. Return False if it cannot run in this round."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        follows = isinstance(work, Step) and runner.follows(requests)
        if not follows and any(request.progress.issued for request in requests):
            self._results.bring_home(keep=0)
            return False
        for request in requests:
            resident = request.on_device.resident
            if not self._is_equipped(request, runner):
                return False
            if resident is None or not self._may_begin(request, runner, resident):
                return False
            more = len(request.progress.draft) if isinstance(work, Verify) else request.progress.issued
            tokens = min(len(resident.keys) + more + runner.loop_steps, request.asked.max_context)
            if not runner.kv_store.grow(resident, tokens):
                self._results.bring_home(keep=0)
                self._make_way(request, resident, tokens)
                return False
        if not follows:
            runner.forget_feed()
        return True

    def _may_begin(self, request: Request, runner: Runner, resident: Resident) -> bool:
        """Return True if the guards allow a request that has nothing to read. Others are checked when they read."""
        if request.progress.watched:
            return True
        key = runner.rows.key((request,), "step", 1, runner.ladders.capacity(len(resident.keys) + 1))
        try:
            missing = [] if key in runner.device.seen else [key]
            runner.device.begins(request, missing, lambda: runner.library.cold_cost([key]))
        except GuardError as error:
            self._failures.fail(error, (request,))
            return False
        return True

    def _make_way(self, request: Request, resident: Resident, tokens: int) -> None:
        """Free memory for a running request that cannot grow: the youngest requests start again, perhaps itself.

        The last one waits for other models to leave, if that can be.
        It grows at once: otherwise the requests that gave way would take the memory back in the next round.
        """
        runner, running = self._work.runner_of(request), self._work.scheduler.running
        self._results.bring_home(keep=0)
        while request in running and not runner.kv_store.grow(resident, tokens):
            if len(running) == 1 and not self._evictor.may_change(request.asked.model):
                self._endings.finish(request, too_large(runner, request, self._evictor.statuses()))
                return
            self._endings.start_again(max(running, key=lambda r: r.asked.number))
            self._work.metrics.preemptions += 1
