"""The owner thread and its loop: schedule, run, postprocess.

Every array of every conversation is touched by this thread alone. Callers hand it requests through an
inbox and read what comes of them from mailboxes. No lock is held while anything runs.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TypeVar

import jax

from langchain_gemma_jax.engine import postprocess
from langchain_gemma_jax.engine.again import clear_frames
from langchain_gemma_jax.engine.device import out_of_memory
from langchain_gemma_jax.engine.generation import deadline_error
from langchain_gemma_jax.engine.leaving import leave_early
from langchain_gemma_jax.engine.metrics import CompileCounter, Metrics
from langchain_gemma_jax.engine.prefix import Resident, common_prefix
from langchain_gemma_jax.engine.request import Completion, Request, TokenLogprobs
from langchain_gemma_jax.engine.runner import InFlight, Made, Runner
from langchain_gemma_jax.engine.scheduler import Read, Scheduler, Step, Verify, Work
from langchain_gemma_jax.errors import (
    CancelledRequestError,
    ClosedError,
    DeviceFailedError,
    DeviceMemoryError,
    GuardError,
)

T = TypeVar("T")

EXIT_SECONDS = 1.0  # that the end of the process waits for a dispatch to end
NO_TOKEN = -1  # picked where the model's scores hold NaN
WORTH_WAITING = 64  # tokens: a prompt waits for another one that is just reading so many of the same


@dataclass(frozen=True)
class KvView:
    """What conversations occupy, as the owner thread last saw it."""

    total: int = 0
    by_scope: tuple[tuple[str, int], ...] = ()


class Owner:
    """The thread that runs the device, and what only it may touch."""

    def __init__(self, rows: int, metrics: Metrics) -> None:
        self.metrics = metrics
        self.compiles = CompileCounter()
        self.runners: dict[Hashable, Runner] = {}
        self.scheduler = Scheduler(rows)
        self.kv = KvView()
        self._flights: deque[InFlight] = deque()
        self._raised: list[BaseException] = []  # in this turn
        self._inbox: SimpleQueue[Request | Callable[[], None] | None] = SimpleQueue()
        self._closing = False
        self._ended = False  # nobody reads the inbox any more
        self.queued = 0  # requests that were not begun yet
        self._gate = threading.Lock()  # for these two: whatever is sent is answered, also while the thread ends
        self._process = os.getpid()
        self.thread = threading.Thread(target=self._live, name="gemma-jax-engine", daemon=True)
        self.thread.start()
        atexit.register(self._end_with_process)

    # From other threads.

    @property
    def closing(self) -> bool:
        return self._closing

    def offer(self, request: Request, max_waiting: int) -> bool:
        """Have a request carried out: what comes of it goes to its mailbox, whatever happens. False: too many wait."""
        with self._gate:
            if self.queued >= max_waiting:
                return False
            if not self._ended:
                self.queued += 1
                request.queued = True
                self._inbox.put(request)
                return True
        self._answer(request, _closed())
        return True

    def call(self, function: Callable[[], T]) -> T:
        """Have the owner thread run this between two dispatches; give what it gave."""
        if threading.current_thread() is self.thread:
            return function()
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(self._while_open(function))
            except BaseException as error:  # noqa: BLE001  it is raised where it was asked for
                future.set_exception(error)

        with self._gate:
            if not self._ended:
                self._inbox.put(run)
            else:
                run()  # which raises
        return future.result()

    def _while_open(self, function: Callable[[], T]) -> T:
        if self._closing:
            raise ClosedError("The engine was closed meanwhile. engine() starts a new one.")
        return function()

    def close(self, timeout: float | None = None) -> bool:
        """End the thread after the dispatch that runs. Requests get ``ClosedError``. Gives whether it has ended."""
        self._closing = True
        self._inbox.put(None)
        if threading.current_thread() is not self.thread:
            self.thread.join(timeout)
        return not self.thread.is_alive()

    def _end_with_process(self) -> None:
        if os.getpid() != self._process:
            return  # forked: the thread did not come along
        try:
            ended = self.close(EXIT_SECONDS)
        except KeyboardInterrupt:  # somebody is in a hurry
            ended = False
        if not ended and not leave_early():
            self.thread.join()

    # The loop.

    def _live(self) -> None:
        error: BaseException | None = None
        try:
            self.compiles.watch_this_thread()
            while self._receive():
                began, busy = time.perf_counter(), self.metrics.device_s + self.metrics.dispatch_s
                try:
                    self._turn()
                except Exception as problem:  # noqa: BLE001  nobody may wait for ever because of a mistake in here
                    self._fail_all(problem, tuple(self.scheduler.waiting))
                while self._raised:
                    clear_frames(self._raised.pop())
                elapsed = time.perf_counter() - began
                self.metrics.host_s += elapsed - (self.metrics.device_s + self.metrics.dispatch_s - busy)
        except BaseException as problem:
            error = problem
            if not isinstance(problem, SystemExit):  # which no thread reports
                raise
        finally:
            self._closing = True
            self._end_all(error)
            self.compiles.stop()
            atexit.unregister(self._end_with_process)

    def _turn(self) -> None:
        """One turn: schedule, run, postprocess."""
        self._tidy()
        self._admit()
        work = self.scheduler.next()
        brings_tokens = work is not None and self._run(work)
        # Look at the results of the dispatch before, while the one just handed over runs.
        self._bring_home(keep=1 if brings_tokens else 0)
        if not self.scheduler.running:
            self._forget_feeds()
        self._look_at_kv()

    def _receive(self) -> bool:
        """Take what callers sent; wait for it if there is nothing else to do. False: close."""
        idle = not len(self.scheduler) and not self._flights
        with suppress(Empty):
            while not self._closing:
                item = self._inbox.get(block=idle)
                idle = False
                if isinstance(item, Request):
                    self._take_in(item)
                elif item is not None:
                    item()
        return not self._closing

    def _take_in(self, request: Request) -> None:
        """It waits for its turn; unless its model was unloaded since it was sent."""
        if request.model in self.runners:
            self.scheduler.waiting.append(request)
        else:
            self._answer(request, ClosedError("The model was unloaded before the request was begun. Serve it again."))

    def _tidy(self) -> None:
        """Requests that nobody wants any more, or whose time is up, leave."""
        now = time.monotonic()
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            if request.cancelled.is_set():
                self._finish(request, CancelledRequestError("The request was cancelled."))
            elif request.overdue(now):
                self._finish(request, deadline_error(request))

    def _admit(self) -> None:
        """Waiting requests get memory, in their order, as long as there is some."""
        for request in list(self.scheduler.waiting):
            if not self.scheduler.has_room:
                return
            if self._will_be_shared(request):
                continue
            runner = self.runners[request.model]
            try:
                taken = runner.memory.take(request)
            except Exception as error:  # noqa: BLE001
                self._drop_half_done(runner)
                self._fail(error, (request,))
                return
            if taken:
                self.scheduler.start(request)
                self._leave_queue(request)
                if request.started_at is None:
                    request.started_at = time.monotonic()
                    self.metrics.reused_tokens += request.reused
            elif not self.scheduler.running:
                self._finish(request, _too_large(runner, request))
            else:
                return

    def _run(self, work: Work) -> bool:
        """Hand work to the device. Gives whether tokens will come of it: not in the midst of a prompt."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        runner = self.runners[requests[0].model]
        try:
            if isinstance(work, Read):
                flight = runner.read(work.request)
            elif not self._prepare(work, runner):
                return False  # something changed: the next turn schedules anew
            elif isinstance(work, Verify):
                flight = runner.verify(work.request)
            else:
                flight = runner.step(work.requests)
        except Exception as error:  # noqa: BLE001
            self._fail(error, requests)
            return False
        if flight is not None:
            self._flights.append(flight)
        return flight is not None

    def _prepare(self, work: Step | Verify, runner: Runner) -> bool:
        """Make sure that a step has room to write and a known start. False: not as scheduled."""
        requests = work.requests if isinstance(work, Step) else (work.request,)
        follows = isinstance(work, Step) and runner.follows(requests)
        if not follows and any(request.issued for request in requests):
            self._bring_home(keep=0)
            return False
        for request in requests:
            resident = request.resident
            if resident is None:
                return False
            tokens = 1 + (len(request.draft) if isinstance(work, Verify) else request.issued)
            fits = len(resident.ids) + tokens <= resident.capacity
            forgets = runner.memory.must_keep_before(resident, max(tokens, runner.loop_steps))
            if fits and not forgets:
                continue
            if request.issued:
                self._bring_home(keep=0)
                return False
            if forgets:
                runner.memory.keep(resident)
            if not runner.memory.grow(resident, len(resident.ids) + tokens):
                self._make_way(request, resident, len(resident.ids) + tokens)
                return False
            if not fits:
                return False  # it belongs to another group now
        if not follows:
            runner.forget_feed()
        return True

    def _make_way(self, request: Request, resident: Resident, tokens: int) -> None:
        """A running request cannot grow. The youngest give up their memory, until it can or is one of them.

        It grows here and now: those that gave way would take the memory back in the next turn.
        """
        runner = self.runners[request.model]
        self._bring_home(keep=0)
        while request in self.scheduler.running and not runner.memory.grow(resident, tokens):
            if len(self.scheduler.running) == 1 and not runner.memory.fits_alone(tokens):
                self._finish(request, _too_large(runner, request))
                return
            # Alone, it is read anew: growing takes the old arrays beside the new ones.
            self._start_again(max(self.scheduler.running, key=lambda r: r.number))
            self.metrics.preemptions += 1

    def _bring_home(self, keep: int) -> None:
        """Look at the results of all dispatches but the last few."""
        while len(self._flights) > keep:
            flight = self._flights.popleft()
            runner = self.runners[flight.requests[0].model]
            try:
                found = runner.collect(flight)
            except Exception as error:  # noqa: BLE001
                self._fail(error, flight.requests)
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
            self._drop_kv(request)  # no conversation may go on from it: a NaN spreads even from where it counts nothing
        else:
            runner.learn(request)
        if end is not None:
            self._finish(request, request.completion(end.reason, end.stop, time.monotonic()))
        elif not_a_number:
            self._finish(request, _no_number(request))
        else:
            postprocess.draft(request, tokens)

    # Endings.

    def _finish(self, request: Request, outcome: Completion | Exception) -> None:
        """A request is over. What it read stays until the bytes are needed."""
        if request not in self.scheduler:
            return
        if (runner := self.runners.get(request.model)) is not None:
            runner.memory.release(request)
        self.scheduler.remove(request)
        self._answer(request, outcome)

    def _answer(self, request: Request, outcome: Completion | Exception) -> None:
        """The last that a caller hears of it. Whoever keeps the generation keeps nothing on the device."""
        self._leave_queue(request)
        request.device_knobs = request.resident = None
        self.metrics.requests += 1
        self.metrics.failed += isinstance(outcome, Exception)
        request.mailbox.put(outcome, last=True)

    def _drop_kv(self, request: Request) -> None:
        """Forget what it has read."""
        if (resident := request.resident) is not None:
            memory = self.runners[request.model].memory
            memory.release(request)
            memory.drop(resident)

    def _drop_half_done(self, runner: Runner) -> None:
        """Something raised while memory was given out: an idle conversation may be in pieces, so none stays."""
        owned = {request.resident for request in self.scheduler.running}
        for resident in runner.memory.index.residents:
            resident.leased = resident in owned
        runner.memory.evict_idle()

    def _start_again(self, request: Request) -> None:
        """A running request lets go of its memory, and is the next to get some."""
        self.runners[request.model].memory.release(request)
        request.issued, request.draft = 0, ()
        self.scheduler.put_back(request)

    def _fail(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """A dispatch for these requests went wrong."""
        self._raised.append(error)
        runner = self.runners[requests[0].model]
        if isinstance(error, GuardError):  # raised before anything ran
            for request in requests:
                self._finish(request, error)
        elif out_of_memory(error):
            self._fail_for_memory(error, requests)
        elif any(array.is_deleted() for array in jax.tree.leaves(runner.params)):
            self._fail_for_weights(runner)
        else:
            self._fail_all(error, requests)

    def _fail_for_weights(self, runner: Runner) -> None:
        """Somebody closed a model that is served. Others are not concerned."""
        model = next(served for served, known in self.runners.items() if known is runner)
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            if request.model == model:
                self._finish(request, ClosedError("The model was closed. Unload it, and load it again."))
        runner.close()

    def _fail_for_memory(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """Free what is idle, and let those concerned start again, once. What they had donated is lost."""
        concerned = set(requests)
        while more := [f for f in self._flights if concerned & set(f.requests)]:
            concerned.update(*(flight.requests for flight in more))
            for flight in more:
                self._flights.remove(flight)
        runner = self.runners[requests[0].model]
        runner.forget_feed()
        for request in sorted(concerned, key=lambda r: -r.number):
            self._drop_kv(request)
            request.device_knobs = None
            request.memory_failures += 1
            if request.memory_failures > 1:
                found = DeviceMemoryError(
                    f"The device's memory was full twice while request {request.number} ran ({len(request.context)} "
                    "tokens), also after everything idle was evicted. Use a shorter context or a smaller model, or "
                    "leave more memory free: configure(kv_bytes=...)."
                )
                found.__cause__ = error
                self._finish(request, found)
            elif request in self.scheduler.running:
                self._start_again(request)
        for other in self.runners.values():
            other.memory.evict_idle()
        self.metrics.memory_retries += 1

    def _fail_all(self, error: Exception, others: tuple[Request, ...] = ()) -> None:
        """Something raised that nobody expected: every request in flight ends, and all memory is given up."""
        self._raised.append(error)
        failure = DeviceFailedError(
            f"A device call failed and every request in flight was ended: {type(error).__name__}: {error}"
        )
        failure.__cause__ = error
        self._flights.clear()
        for request in [*self.scheduler.running, *others]:
            self._finish(request, failure)
        self._forget_feeds()
        for runner in self.runners.values():
            runner.memory.clear()
        self._look_at_kv()

    def _end_all(self, error: BaseException | None) -> None:
        """The thread ends: nobody may be left waiting, and nothing may stay on the device."""
        ended = _closed()
        if error is not None:
            ended = ClosedError(f"The engine's thread was ended by {type(error).__name__}. engine() starts a new one.")
            ended.__cause__ = error
            clear_frames(error)
        with self._gate:
            self._ended = True
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            self._answer(request, ended)
        with suppress(Empty):
            while True:
                item = self._inbox.get_nowait()
                if isinstance(item, Request):
                    self._answer(item, ended)
                elif item is not None:
                    item()  # which raises where it was asked for
        self.scheduler.running.clear()
        self.scheduler.waiting.clear()
        self._flights.clear()
        for runner in self.runners.values():
            with suppress(Exception):
                runner.close()
        self.runners.clear()
        self.kv = KvView()

    # Little helpers of the loop.

    def _leave_queue(self, request: Request) -> None:
        if request.queued:
            request.queued = False
            with self._gate:
                self.queued -= 1

    def _will_be_shared(self, request: Request) -> bool:
        """Whether another request is just reading what this one begins with, so that it is better to wait for that."""
        readers = [r for r in self.scheduler.running if r.to_read > 1 and r.group[0] == request.group[0]]
        if not any(reader.scope == request.scope for reader in readers):
            return False
        memory = self.runners[request.model].memory
        have = memory.index.plan(request.prompt, request.scope).length
        prompt = request.prompt.tobytes()
        for reader in readers:
            limit = min(len(request.prompt), len(reader.prompt)) - 1
            common = common_prefix(prompt, reader.prompt, limit) if reader.scope == request.scope else 0
            waits = common in reader.marks  # and goes on waiting: what is read meanwhile is what it waits for
            if reader.held < common and (waits or common - have >= WORTH_WAITING):
                reader.marks.add(common)
                return True
        return False

    def _forget_feeds(self) -> None:
        """Nothing of requests that are over is kept for the next step."""
        for runner in self.runners.values():
            runner.forget_feed()

    def _look_at_kv(self) -> None:
        if any(runner.memory.changed for runner in self.runners.values()):
            self.count_kv()

    def count_kv(self) -> None:
        """Have the report say what conversations occupy now."""
        sizes: dict[str, int] = {}
        for runner in self.runners.values():
            runner.memory.changed = False
            for scope, size in runner.memory.nbytes_by_scope().items():
                sizes[scope] = sizes.get(scope, 0) + size
        self.kv = KvView(sum(r.memory.nbytes() for r in self.runners.values()), tuple(sorted(sizes.items())))


def _closed() -> ClosedError:
    return ClosedError("The engine was closed before the request was done. engine() starts a new one.")


def _no_number(request: Request) -> DeviceFailedError:
    return DeviceFailedError(
        f"The model gave NaN scores after {len(request.context)} tokens. What it had read was dropped. If other "
        "prompts end so too, its weights hold NaN, or are too large for their dtype: check the files, or load it with "
        'dtype="float32".'
    )


def _too_large(runner: Runner, request: Request) -> DeviceMemoryError:
    budget, context = runner.memory.policy.budget, len(request.context)
    return DeviceMemoryError(
        f"A conversation of {context} tokens does not fit the {budget} bytes that conversations may take, even alone. "
        "Shorten it, or allow more: configure(kv_bytes=...)."
    )
