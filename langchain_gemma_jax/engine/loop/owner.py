"""The owner thread and its loop: schedule, run, postprocess.

Every array of every conversation is touched by this thread alone. Callers hand it requests through an
inbox and read what comes of them from mailboxes. No lock is held while anything runs.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable
from contextlib import suppress
from queue import Empty
from typing import TypeVar

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import CompileCounter, Metrics
from langchain_gemma_jax.engine.device.programs import NO_TOKEN
from langchain_gemma_jax.engine.executables.background import Background, workers
from langchain_gemma_jax.engine.host.error_copies import clear_frames
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early
from langchain_gemma_jax.engine.loop.failures import Endings, ended_by, no_number, too_large
from langchain_gemma_jax.engine.loop.loop_thread import LoopThread
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.engine.requests.request import Request, TokenLogprobs, deadline_error
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.steps import postprocess
from langchain_gemma_jax.engine.steps.postprocess import End
from langchain_gemma_jax.engine.steps.prompt_sharing import will_be_shared
from langchain_gemma_jax.engine.steps.runner import Made, Runner
from langchain_gemma_jax.engine.steps.scheduler import Read, Step, Verify, Work
from langchain_gemma_jax.errors import CancelledRequestError, ClosedError
from langchain_gemma_jax.reentry import Inside, from_the_engine

T = TypeVar("T")

LOOK_SECONDS = 0.02  # between two looks at requests that wait for a model ...
SHORT_LOOK_SECONDS = 0.001  # ... and at those that wait for memory, or for their turn
EXIT_SECONDS = 1.0  # that the end of the process waits for a dispatch to end


class Owner(Endings):
    """The thread that runs the device, and what only it may touch."""

    def __init__(self, rows: int, metrics: Metrics, events: Events) -> None:
        super().__init__(rows, metrics, events)
        self.compiles = CompileCounter()
        self.background = Background(
            workers(), begin=self.compiles.watch_this_thread, end=self.compiles.leave_this_thread
        )
        self.programs: Callable[[], object] = list  # all that are loaded
        self._kept: object = None
        self.loading = Inside("it loaded a model")  # callers' own threads that may be inside XLA ...
        self.waiting = Inside("it waited for a model")  # ... and those that wait for something that takes long
        self._process = os.getpid()
        self.thread = LoopThread(self._live, "gemma-jax-engine")  # begun by the first who wants something of it
        atexit.register(self._end_with_process)

    # From other threads.

    @property
    def closing(self) -> bool:
        return self._inbox.closing

    @property
    def queued(self) -> int:
        """How many requests wait to be begun."""
        return self._inbox.queued

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Have a request carried out, as ``Inbox.offer`` has it."""
        self.thread.start()
        return self._inbox.offer(request, max_waiting)

    def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Have the owner thread run this between two dispatches; give what it gave.

        Raises:
            ClosedError: the engine was closed. TimeoutError: it was not its turn in time; it will be.
        """
        if self.thread.is_current:
            return function()
        self.thread.start()
        return self._inbox.call(function).get(timeout).give()

    def refuse_waiting(self) -> None:
        """Refuse a thread that may not wait for this one.

        Raises:
            ReentrantCallError: it is one of the engine's own, or was interrupted while it held what this one may need.
        """
        self.loading.refuse()
        self.waiting.refuse()
        if self.thread.is_current or self.background.is_current:
            raise from_the_engine()

    def close(self, timeout: float | None = None) -> bool:
        """End the threads after what they are doing. Requests get ``ClosedError``. Gives whether they have ended."""
        began = time.monotonic()
        self._inbox.close()
        self.background.close(0)
        self.thread.start()  # which ends what there is
        if not self.thread.is_current:
            self.thread.wait(timeout)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        return self.background.close(left) and self.thread.ended

    def _end_with_process(self) -> None:
        if os.getpid() != self._process or not self.thread.begun:
            return  # forked: the thread did not come along; or there is none
        try:
            ended = self.close(EXIT_SECONDS)
        except KeyboardInterrupt:  # somebody is in a hurry
            ended = False
        if (not ended or self.loading) and not leave_early():
            self.thread.wait()
            self.background.close()

    # The loop.

    def _live(self) -> None:
        error: BaseException | None = None
        try:
            self.compiles.watch_this_thread()
            while self._receive():
                began, busy = time.perf_counter(), self.metrics.device_s + self.metrics.dispatch_s
                try:
                    self._round()
                except Exception as problem:  # noqa: BLE001  nobody may wait for ever because of a mistake in here
                    self.fail_all(problem, tuple(self.scheduler.waiting))
                while self.raised:
                    clear_frames(self.raised.pop())
                elapsed = time.perf_counter() - began
                self.metrics.host_s += elapsed - (self.metrics.device_s + self.metrics.dispatch_s - busy)
        except BaseException as problem:  # noqa: BLE001  Python would write all that it says to where anybody reads it
            error = problem
        finally:
            self._end_all(error)
            self.compiles.leave_this_thread()
            self.background.close(0)
            if not self.background.busy:  # else the process may end while one of them is inside XLA
                atexit.unregister(self._end_with_process)

    def _round(self) -> None:
        """Run one round: schedule, run, postprocess."""
        self._tidy()
        self.keeper.round()
        self._admit()
        if self.keeper.waits:
            self.keeper.round()  # what was found to be missing just now need not wait for the next turn
        work = self.scheduler.next()
        brings_tokens = work is not None and self._run(work)
        # Look at the results of the dispatch before, while the one just handed over runs.
        self._bring_home(keep=1 if brings_tokens else 0)
        if not self.scheduler.running:
            self.forget_feeds()
        self.look_at_kv()

    def _receive(self) -> bool:
        """Take what callers sent; wait for it if there is nothing else to do. False: close."""
        if (patience := self._patience()) != 0.0:
            self.keeper.rest()
        with suppress(Empty):
            while not self.closing:
                item = self._inbox.get(patience)
                patience = 0.0
                if isinstance(item, Request):
                    self.take_or_refuse(item, self._take_in)
                elif item is not None:
                    item()
        return not self.closing

    def _patience(self) -> float | None:
        """How long there is nothing to do unless somebody sends something. None: for ever."""
        if self.scheduler.running or self.flights:
            return 0.0
        if any(request.model in self.runners for request in self.scheduler.waiting):
            return SHORT_LOOK_SECONDS
        # Those that wait for a model can be cancelled, or their time can be up: nobody sends that.
        return LOOK_SECONDS if self.scheduler.waiting or self.keeper.waits else self.keeper.patience()

    def _take_in(self, request: Request) -> None:
        """Have a request wait for its turn; answer it with an error if its model was unloaded since it was sent."""
        if request.model in self.keeper.known:
            if (end := self._go_on(request)) is None:
                if request.lookup is not None:
                    request.lookup.extend(request.context[len(request.prompt) :])
                self.scheduler.waiting.append(request)
            else:  # there was no alternative to all of it
                self.answer(request, request.completion(end.reason, end.stop, time.monotonic()))
        else:
            self.answer(request, ClosedError("The model was unloaded before the request was begun. Serve it again."))

    def _tidy(self) -> None:
        """Requests that nobody wants any more, or whose time is up, leave."""
        now = time.monotonic()
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            if request.cancelled.is_set():
                self.finish(request, CancelledRequestError("The request was cancelled."))
            elif request.overdue(now):
                self.finish(request, deadline_error(request))

    def _admit(self) -> None:
        """Waiting requests get memory, in their order, as long as there is some."""
        for request in list(self.scheduler.waiting):
            if not self.scheduler.has_room:
                return
            if (runner := self._runner_for(request)) is None or will_be_shared(
                request, self.scheduler.running, runner.memory.index
            ):
                continue
            runner.device.asked_by = (request,)
            try:
                taken = runner.memory.take(request)
            except Exception as error:  # noqa: BLE001
                self.drop_half_done(runner)
                self.fail(error, (request,))
                return
            if taken:
                self.scheduler.start(request)
                self._inbox.begun(request)
                if request.started_at is None:
                    request.started_at, request.compiles_before = time.monotonic(), self.compiles.compiles
                    self.metrics.reused_tokens += request.reused
            elif not self.scheduler.running and not self.keeper.may_change(request.model):
                self.finish(request, too_large(runner, request, self.keeper.statuses()))
            else:
                return

    def _runner_for(self, request: Request) -> Runner | None:
        """What runs it. None: not now; if its model is not in memory, it will be."""
        known = self.keeper.known[request.model]
        if (runner := self.runners.get(request.model)) is None:
            self.keeper.want(known)
        elif not self.keeper.may_run(known, time.monotonic()):
            return None
        return runner

    def _run(self, work: Work) -> bool:
        """Hand work to the device. Gives whether tokens will come of it: not in the midst of a prompt."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        runner = self.runners[requests[0].model]
        runner.device.asked_by = requests
        try:
            if isinstance(work, Read):
                flight = runner.read(work.request) if self._fits(work.request, runner) else None
            elif not self._prepare(work, runner):
                return False  # something changed: the next round schedules anew
            elif isinstance(work, Verify):
                flight = runner.verify(work.request)
            else:
                requests, rows = self._beside(requests, runner)
                flight = runner.step(requests, rows) if requests else None
        except Exception as error:  # noqa: BLE001
            self.fail(error, requests)
            return False
        if flight is not None:
            self.flights.append(flight)
        return flight is not None

    def _beside(self, requests: tuple[Request, ...], runner: Runner) -> tuple[tuple[Request, ...], int]:
        """Return the requests that share the next step, and its rows; the others come next. No requests: not yet."""
        together, rows = runner.together(requests, self.scheduler.alike(requests[0]))
        if together < len(requests) and any(request.issued for request in requests):
            self._bring_home(keep=0)
            return (), rows
        self.scheduler.split(requests[together:])
        return requests[:together], rows

    def _fits(self, request: Request, runner: Runner) -> bool:
        """Whether what it has to read fits its memory: a grammar can append a lot. False: not as it is."""
        resident, tokens = request.resident, len(request.context)
        if resident is None or tokens <= resident.capacity:
            return resident is not None
        self._bring_home(keep=0)
        if not runner.memory.grow(resident, tokens):
            self._make_way(request, resident, tokens)
        return False

    def _prepare(self, work: Step | Verify, runner: Runner) -> bool:
        """Make sure that a step has room to write and a known start. False: not as scheduled."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        follows = isinstance(work, Step) and runner.follows(requests)
        if not follows and any(request.issued for request in requests):
            self._bring_home(keep=0)
            return False
        for request in requests:
            resident = request.resident
            if resident is None or not self.may_begin(request, runner, resident):
                return False
            tokens = 1 + (len(request.draft) if isinstance(work, Verify) else request.issued)
            fits = len(resident.keys) + tokens <= resident.capacity
            forgets = runner.memory.must_keep_before(resident, max(tokens, runner.loop_steps))
            if fits and not forgets:
                continue
            if request.issued:
                self._bring_home(keep=0)
                return False
            if forgets:
                runner.memory.keep(resident)
            if not runner.memory.grow(resident, len(resident.keys) + tokens):
                self._make_way(request, resident, len(resident.keys) + tokens)
                return False
            if not fits:
                return False  # it belongs to another group now
        if not follows:
            runner.forget_feed()
        return True

    def _make_way(self, request: Request, resident: Resident, tokens: int) -> None:
        """A running request cannot grow. The youngest give up their memory, until it can or is one of them.

        It grows here and now: those that gave way would take the memory back in the next round.
        """
        runner = self.runners[request.model]
        self._bring_home(keep=0)
        while request in self.scheduler.running and not runner.memory.grow(resident, tokens):
            if len(self.scheduler.running) == 1 and not runner.memory.fits_alone(tokens):
                self.finish(request, too_large(runner, request, self.keeper.statuses()))
                return
            # Alone, it is read anew: growing takes the old arrays beside the new ones.
            self.start_again(max(self.scheduler.running, key=lambda r: r.number))
            self.metrics.preemptions += 1

    def _bring_home(self, keep: int) -> None:
        """Look at the results of all dispatches but the last few."""
        while len(self.flights) > keep:
            flight = self.flights.popleft()
            runner = self.runners[flight.requests[0].model]
            try:
                found = runner.collect(flight)
            except Exception as error:  # noqa: BLE001
                self.fail(error, flight.requests)
                return
            for made in found:
                if made.request in self.scheduler.running:
                    self._deliver(made, runner)

    def _deliver(self, made: Made, runner: Runner) -> None:
        request, tokens = made.request, made.tokens
        if not_a_number := NO_TOKEN in tokens:
            tokens = tokens[: tokens.index(NO_TOKEN)]
        details = [
            TokenLogprobs(token, logprob, tuple(zip(ids, values, strict=True))[: request.sampling.top_logprobs])
            for token, (logprob, ids, values) in zip(tokens, made.logprobs, strict=False)
        ]
        before = request.generated
        end = postprocess.accept(request, tokens, details) if tokens else None
        got = request.generated - before
        self.metrics.generated_tokens += got
        if made.drafted:
            request.drafted += made.drafted
            accepted = min(made.accepted, got)  # what stands behind the end was not wanted
            request.accepted += accepted
            self.metrics.drafted_tokens += made.drafted
            self.metrics.accepted_tokens += accepted
            if request.lookup is not None:
                request.lookup.record(made.drafted, made.accepted)
        if not_a_number:
            self.drop_kv(request)  # no conversation may go on from it: a NaN spreads even from where it counts nothing
        else:
            runner.learn(request)
        if end is None and not_a_number:
            self.finish(request, no_number(request))
        elif (end := self._go_on(request, end, illegal=end is None and got < len(tokens))) is not None:
            compiled = self.compiles.compiles - request.compiles_before
            self.finish(request, request.completion(end.reason, end.stop, time.monotonic(), compiled))
        else:
            if got < len(tokens):
                runner.draw_again(request)
            postprocess.draft(request, request.context[len(request.prompt) + before :])

    def _go_on(self, request: Request, end: End | None = None, *, illegal: bool = False) -> End | None:
        """What its grammar appends. Where it does, or a token was illegal, dispatches in flight are of no use."""
        before = request.generated
        end = postprocess.go_on(request, end)
        forced = request.generated - before
        self.metrics.generated_tokens += forced
        self.metrics.forced_tokens += forced
        self.metrics.illegal_tokens += illegal
        if forced or illegal:
            request.begin_epoch()
        return end

    def _end_all(self, error: BaseException | None) -> None:
        """The thread ends: nobody may be left waiting, and nothing may stay on the device."""
        # A caller's own thread that is told of the end lets go of the programs. Were it the last to have them, it could
        # be inside XLA, taking them apart, while the process ends: see leaving.py. So they stay as long as the engine.
        self._kept = self.programs()
        requests = [*self._inbox.end(), *self.scheduler.running, *self.scheduler.waiting]
        ended = closed() if error is None else ended_by(error, requests)
        clear_frames(error)
        for request in requests:
            self.answer(request, ended)
        self.give_up_everything()
