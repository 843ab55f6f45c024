"""The owner thread and its loop: schedule, run, postprocess.

Every array of every conversation is touched by this thread alone. Callers hand it requests through an
inbox and read what comes of them from mailboxes. No lock is held while anything runs.
"""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import Empty
from typing import Protocol, TypeVar

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.executables.libraries import Libraries
from langchain_gemma_jax.engine.host.error_copies import clear_frames
from langchain_gemma_jax.engine.loop.admission import Admission
from langchain_gemma_jax.engine.loop.dispatching import Dispatching
from langchain_gemma_jax.engine.loop.exit_inside_xla import leave_early
from langchain_gemma_jax.engine.loop.failures import Failures, ended_by
from langchain_gemma_jax.engine.loop.loop_thread import LoopThread
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.results import Results
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.inbox import closed
from langchain_gemma_jax.engine.requests.request import Request
from langchain_gemma_jax.engine.residency.known_models import KnownModel
from langchain_gemma_jax.engine.residency.ledger import Ledger
from langchain_gemma_jax.engine.residency.model_evictor import ModelEvictor
from langchain_gemma_jax.engine.residency.room_queue import RoomQueue
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import ClosedError
from langchain_gemma_jax.reentry import Inside, from_the_engine

T = TypeVar("T")

LOOK_SECONDS = 0.02  # between two looks at requests that wait for a model ...
SHORT_LOOK_SECONDS = 0.001  # ... and at those that wait for memory, or for their turn
REST_SECONDS = 1.0  # without work, until memory that the allocator keeps goes back to the system
EXIT_SECONDS = 1.0  # that the end of the process waits for a dispatch to end


class OwnerHost(Protocol):
    """The engine around the owner thread, as that thread needs it."""

    def budget(self, home: Hashable) -> int:
        """Return the bytes of each device of a place that models and their conversations may take."""
        ...

    def load_again(self, known: KnownModel) -> None:
        """Begin to load a model that was evicted: there is room for it now. Never blocks."""
        ...

    @property
    def loads_run(self) -> bool:
        """True if a model is being loaded."""
        ...

    def end_loads(self, until: float | None) -> bool:
        """Have what is being loaded end. Gives whether nothing is any more, at that time by ``time.monotonic()``."""
        ...


class Owner:
    """The thread that runs the device, and what only it may touch."""

    def __init__(self, rows: int, metrics: Metrics, events: Events, libraries: Libraries, host: OwnerHost) -> None:
        self.compiles, self.background = libraries.compiles, libraries.background
        self._libraries, self._host = libraries, host
        self._kept: object = None
        self._worked = False  # since memory was given back
        self.standstills = libraries.tally.standstills
        self._work = work = WorkInHand(Scheduler(rows), metrics, events, self.compiles, standstills=self.standstills)
        self.models, self.scheduler = work.models, work.scheduler
        self.evictor = ModelEvictor(
            work.models, Ledger(host.budget), RoomQueue(self), work.scheduler, work.flights, metrics, events
        )
        self._endings = RequestEndings(work)
        self._failures = Failures(work, self._endings, self.evictor)
        self._results = Results(work, self._endings, self._failures)
        self._admission = Admission(work, self._endings, self._failures, self._results, self.evictor)
        self._dispatching = Dispatching(work, self._endings, self._failures, self._results, self.evictor)
        self.loading = Inside("it loaded a model")  # callers' own threads that may be inside XLA ...
        self.waiting = Inside("it waited for a model")  # ... and those that wait for something that takes long
        self._process = os.getpid()
        self.thread = LoopThread(self._live, "gemma-jax-engine")  # begun by the first who wants something of it
        atexit.register(self._end_with_process)

    # From other threads.

    @property
    def alive(self) -> bool:
        """True if the engine can take requests."""
        return os.getpid() == self._process and not self.thread.ended and not self.closing

    @property
    def closing(self) -> bool:
        return self._work.inbox.closing

    @property
    def queued(self) -> int:
        """The number of requests that wait to be begun."""
        return self._work.inbox.queued

    @property
    def waiting_to_begin(self) -> tuple[Request, ...]:
        """The requests that wait to be begun."""
        return self._work.inbox.waiting

    @property
    def oldest_wait_s(self) -> float:
        """Seconds that the one has waited which waits longest."""
        return self._work.inbox.oldest_wait_s

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Have a request carried out, as ``Inbox.offer`` has it."""
        self.thread.start()
        return self._work.inbox.offer(request, max_waiting)

    def call(self, function: Callable[[], T], timeout: float | None = None) -> T:
        """Have the owner thread run this between two dispatches; give what it gave.

        Raises:
            ClosedError: the engine was closed. TimeoutError: it was not its turn in time; it will be.
        """
        if self.thread.is_current:
            return function()
        self.thread.start()
        return self._work.inbox.call(function).get(timeout).give()

    def post(self, function: Callable[[], None]) -> None:
        """Have the owner thread run this some time, if the engine is not closed before."""
        with suppress(ClosedError, TimeoutError):
            self.call(function, 0.0)

    def check_alive(self) -> None:
        """See that there is an engine to ask.

        Raises:
            ForkedError: it stayed in the parent process. ClosedError: it was closed.
        """
        ancestry.refuse_forked()
        if not self.alive:
            raise ClosedError("This engine was closed. engine() starts a new one.")

    def check_usable(self) -> None:
        """See that this thread may ask the engine for something.

        Raises:
            ForkedError, ClosedError: see ``check_alive``. ReentrantCallError: see ``refuse_waiting``.
        """
        self.check_alive()
        self.refuse_waiting()

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
        self._work.inbox.close()
        self.background.close(0)
        self.thread.start()  # which ends what there is
        if not self.thread.is_current:
            self.thread.wait(timeout)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        return self.background.close(left) and self.thread.ended

    def _end_with_process(self) -> None:
        """Have no thread inside XLA when the process ends, or the process left before that kills it."""
        if os.getpid() != self._process:
            return  # forked: the threads did not come along
        until = time.monotonic() + EXIT_SECONDS
        try:
            ended = self._end(until)
        except KeyboardInterrupt:  # pressed a second time
            ended = False
        if (not ended or self.loading) and not leave_early(self.loading.threads):
            self._end(None)

    def _end(self, until: float | None) -> bool:
        """End all threads, those that load models included. Gives whether they have ended until then."""
        left = None if until is None else max(0.0, until - time.monotonic())
        self._host.end_loads(0.0)  # they need not wait for each other
        # A thread that has not begun need not, and since Python 3.12 it cannot while the process ends.
        ended = self.close(left) if self.thread.begun else self._close_unbegun(left)
        return self._host.end_loads(until) and ended

    def _close_unbegun(self, timeout: float | None) -> bool:
        self._work.inbox.close()
        return self.background.close(timeout)

    # What those who wait for room ask for, on the owner thread.

    def load_again(self, known: KnownModel) -> None:
        """Begin to load a model again: there is room for it now."""
        self._host.load_again(known)

    def is_waited_for(self, known: KnownModel) -> bool:
        """Return True if requests wait for a model."""
        return any(request.asked.model is known.served for request in self.scheduler.waiting)

    def refuse(self, known: KnownModel, error: Exception) -> None:
        """End the requests that wait for a model: it does not come."""
        self._endings.refuse(known, error)

    # The loop.

    def _live(self) -> None:
        with jax.disable_jit(disable=False):  # which users set to debug functions of their own
            error: BaseException | None = None
            work, metrics = self._work, self._work.metrics
            try:
                self.compiles.watch_this_thread()
                while self._receive():
                    began, busy = time.perf_counter(), metrics.device_s + metrics.dispatch_s
                    idle, stood = (not work.flights, metrics.dispatches), self.standstills.seconds
                    try:
                        self._round()
                    except Exception as problem:  # noqa: BLE001  no caller may wait for ever because of a mistake in here
                        self._failures.fail_all(problem, tuple(work.scheduler.waiting))
                    while work.raised:
                        clear_frames(work.raised.pop())
                    took = time.perf_counter() - began
                    metrics.host_s += took - (metrics.device_s + metrics.dispatch_s - busy)
                    if idle != (True, metrics.dispatches):  # something ran, or was handed over
                        metrics.busy_s += took - (self.standstills.seconds - stood)
            except BaseException as problem:  # noqa: BLE001  Python would write all of it, prompts too, to stderr
                error = problem
            finally:
                self._end_all(error)
                self.compiles.leave_this_thread()
                self.background.close(0)
                # Else the process may end while one of them is inside XLA.
                if not self.background.busy and not self._host.loads_run:
                    atexit.unregister(self._end_with_process)

    def _round(self) -> None:
        """Run one round: schedule, run, postprocess."""
        self._admission.tidy()
        self.evictor.round()
        self._admission.admit()
        if self.evictor.queue.waits:
            self.evictor.round()  # what was found to be missing just now need not wait for the next round
        work = self.scheduler.next()
        self._worked |= work is not None
        brings_tokens = work is not None and self._dispatching.run(work)
        # Look at the results of the dispatch before, while the one just handed over runs.
        self._results.bring_home(keep=1 if brings_tokens else 0)
        if not self.scheduler.running:
            self._failures.forget_feeds()
        self.evictor.publish_changes()

    def _receive(self) -> bool:
        """Take what callers sent; wait for it if there is nothing else to do. False: close."""
        if (patience := self._patience()) != 0.0:
            self.evictor.rest()
        with suppress(Empty):
            while not self.closing:
                item = self._next_item(patience)
                patience = 0.0
                if isinstance(item, Request):
                    self._admission.take_in(item)
                elif item is not None:
                    item()
        return not self.closing

    def _next_item(self, patience: float | None) -> Request | Callable[[], None] | None:
        """Return what callers sent next. After a second without work, freed memory is given back meanwhile.

        Raises:
            Empty: nothing came.
        """
        if self._worked and (patience is None or patience > REST_SECONDS):
            with suppress(Empty):
                return self._work.inbox.get(REST_SECONDS)
            self._worked = False
            self.background.rest()
            patience = None if patience is None else patience - REST_SECONDS
        return self._work.inbox.get(patience)

    def _patience(self) -> float | None:
        """Return the seconds for which there is nothing to do unless something is sent. None: for ever."""
        if self.scheduler.running or self._work.flights:
            return 0.0
        if any(request.asked.model in self.models.runners for request in self.scheduler.waiting):
            return SHORT_LOOK_SECONDS
        # Those that wait for a model can be cancelled, or their time can be up: no message comes then.
        waits = self.scheduler.waiting or self.evictor.queue.waits
        return LOOK_SECONDS if waits else self.evictor.patience()

    def _end_all(self, error: BaseException | None) -> None:
        """End the thread: no caller may be left waiting, and nothing may stay on the device."""
        # A caller's own thread that hears of the end lets go of the programs. Were it the last to have them, it could
        # be inside XLA, taking them apart, while the process ends: see exit_inside_xla.py. So they stay as long as the
        # engine.
        self._kept = self._libraries.all()
        requests = [*self._work.inbox.end(), *self.scheduler.running, *self.scheduler.waiting]
        ended = closed() if error is None else ended_by(error, requests)
        clear_frames(error)
        for request in requests:
            self._endings.answer(request, ended)
        self._failures.give_up_everything()
