"""How requests end, well or not, and what becomes of their memory. For the owner thread."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import jax

from langchain_gemma_jax.engine.base.events import Events
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.device.transfers import out_of_memory
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.host.error_names import named, tells_nothing
from langchain_gemma_jax.engine.requests.inbox import Inbox, closed
from langchain_gemma_jax.engine.requests.request import Completion, Request
from langchain_gemma_jax.engine.requests.resident import Resident
from langchain_gemma_jax.engine.residency.model_evictor import Keeper
from langchain_gemma_jax.engine.residency.model_record import Known
from langchain_gemma_jax.engine.residency.model_status import ModelStatus, who_holds_what
from langchain_gemma_jax.engine.steps.runner import InFlight, Runner
from langchain_gemma_jax.engine.steps.scheduler import Scheduler
from langchain_gemma_jax.errors import ClosedError, DeviceFailedError, DeviceMemoryError, GuardError

_log = logging.getLogger(__name__)

WORTH_MEASURING = 16  # tokens of a prompt: what fewer take says little of how long a token takes


@dataclass(frozen=True)
class KvView:
    """What conversations occupy, as the owner thread last saw it."""

    total: int = 0
    by_scope: tuple[tuple[str, int], ...] = ()


class Endings:
    """The requests of an engine and what they run on: as far as they end."""

    def __init__(self, rows: int, metrics: Metrics, events: Events) -> None:
        self.metrics, self.events = metrics, events
        self.runners: dict[Hashable, Runner] = {}
        self.scheduler = Scheduler(rows)
        self.kv = KvView()
        self.flights: deque[InFlight] = deque()
        self.raised: list[BaseException] = []  # in this round of the loop
        self._inbox = Inbox()
        self.keeper = Keeper(self.runners, self.scheduler, self.flights, metrics, events)
        self.keeper.refused = self._refuse

    def finish(self, request: Request, outcome: Completion | Exception) -> None:
        """A request is over. What it read stays until the bytes are needed."""
        if request not in self.scheduler:
            return
        if (runner := self.runners.get(request.model)) is not None:
            runner.memory.release(request)
        self.scheduler.remove(request)
        if isinstance(outcome, Completion):
            self._learn_cost(request, outcome)
        self.answer(request, outcome)

    def answer(self, request: Request, outcome: Completion | Exception) -> None:
        """The last that a caller hears of it. Whoever keeps the generation keeps nothing on the device."""
        self._inbox.begun(request)
        request.device_knobs = request.device_masked = request.resident = None
        self.events.tell(request.finished(outcome, time.monotonic()))
        request.mailbox.put(outcome, last=True)

    def take_or_refuse(self, request: Request, take: Callable[[Request], None]) -> None:
        """Take a request in. Should what it is held to raise, that concerns nobody else, and it is answered."""
        try:
            take(request)
        except Exception as error:  # noqa: BLE001  whatever it is
            self.raised.append(error)
            failure = DeviceFailedError(f"The request could not be begun: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.answer(request, failure)

    def may_begin(self, request: Request, runner: Runner, resident: Resident) -> bool:
        """Whether the guards let a request go on that has nothing to read: what reads is looked at where it does."""
        if request.watched:
            return True
        key = ("step", 1, resident.capacity)
        try:
            missing = [] if key in runner.device.seen else [key]
            runner.device.begins(request, missing, lambda: runner.library.cold_seconds([key]))
        except GuardError as error:
            self.fail(error, (request,))
            return False
        return True

    def _learn_cost(self, request: Request, done: Completion) -> None:
        """How long reading a prompt takes here."""
        known, read = self.keeper.known.get(request.model), done.prompt_tokens - done.reused_tokens
        if known is not None and read >= WORTH_MEASURING and done.ids:
            known.shelf.read.add(done.timings.prefill_s, read)

    def _refuse(self, known: Known, error: Exception) -> None:
        """A model that requests wait for does not come."""
        for request in list(self.scheduler.waiting):
            if request.model is known.served:
                self.finish(request, again(error))

    def drop_kv(self, request: Request) -> None:
        """Forget what it has read."""
        if (resident := request.resident) is not None:
            memory = self.runners[request.model].memory
            memory.release(request)
            memory.drop(resident)

    def drop_half_done(self, runner: Runner) -> None:
        """Something raised while memory was given out: an idle conversation may be in pieces, so none stays."""
        owned = {request.resident for request in self.scheduler.running}
        for resident in runner.memory.index.residents:
            resident.leased = resident in owned
        runner.memory.evict_idle()

    def start_again(self, request: Request) -> None:
        """A running request lets go of its memory, and is the next to get some."""
        self.runners[request.model].memory.release(request)
        request.begin_epoch()
        request.draft = ()
        self.scheduler.put_back(request)

    def fail(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """A dispatch for these requests went wrong."""
        self.raised.append(error)
        runner = self.runners[requests[0].model]
        if isinstance(error, GuardError | DeviceMemoryError):  # raised before anything ran
            for request in requests:
                self.finish(request, error)
        elif self._inbox.closing:  # JAX may be being taken down. What fails of that says nothing about the programs
            for request in requests:
                self.finish(request, closed())
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
        concerned = {r for r in self.scheduler.running if self.runners[r.model] is runner}
        self.flights = deque(flight for flight in self.flights if not concerned & set(flight.requests))
        for request in sorted(concerned, key=lambda r: -r.number):
            request.device_knobs = request.device_masked = None
            self.start_again(request)
        runner.forget_feed()
        runner.memory.clear()

    def _fail_for_weights(self, runner: Runner) -> None:
        """Somebody closed a model that is served. Others are not concerned."""
        model = next(served for served, known in self.runners.items() if known is runner)
        for request in [*self.scheduler.running, *self.scheduler.waiting]:
            if request.model == model:
                self.finish(request, ClosedError("The model was closed. Unload it, and load it again."))
        runner.close()

    def _fail_for_memory(self, error: Exception, requests: tuple[Request, ...]) -> None:
        """Free what is idle, and let those concerned start again, once. What they had donated is lost."""
        concerned = set(requests)
        while more := [f for f in self.flights if concerned & set(f.requests)]:
            concerned.update(*(flight.requests for flight in more))
            for flight in more:
                self.flights.remove(flight)
        runner = self.runners[requests[0].model]
        runner.forget_feed()
        for request in sorted(concerned, key=lambda r: -r.number):
            self.drop_kv(request)
            request.device_knobs = request.device_masked = None
            request.memory_failures += 1
            if request.memory_failures > 1:
                holders = self.keeper.statuses()
                found = DeviceMemoryError(
                    f"The device's memory was full twice while request {request.number} ran ({len(request.context)} "
                    "tokens), also after everything idle was evicted. Use a shorter context or a smaller model, or "
                    f"leave more memory free: configure(kv_bytes=...). In memory: {who_holds_what(holders)}.",
                    tuple(str(holder) for holder in holders if holder.nbytes),
                )
                found.__cause__ = error
                self.finish(request, found)
            elif request in self.scheduler.running:
                self.start_again(request)
        self.keeper.evict_idle("the device's memory was full")
        self.metrics.memory_retries += 1

    def fail_all(self, error: Exception, others: tuple[Request, ...] = ()) -> None:
        """Something raised that nobody expected: every request in flight ends, and all memory is given up."""
        self.raised.append(error)
        ended = [*self.scheduler.running, *others]
        may_tell = tells_nothing(error) or not concerns_several_tenants(ended)
        told = f"{type(error).__name__}: {error}" if may_tell else named(error)
        failure = DeviceFailedError(f"A device call failed and every request in flight was ended: {told}")
        failure.__cause__ = error if may_tell else None
        self.flights.clear()
        for request in ended:
            self.finish(request, failure)
        self.forget_feeds()
        for runner in self.runners.values():
            runner.memory.clear()
        self.look_at_kv()

    def forget_feeds(self) -> None:
        """Forget what runners kept for the next step of requests that are over."""
        for runner in self.runners.values():
            runner.forget_feed()

    def give_up_everything(self) -> None:
        """The thread ends: nothing stays on the device."""
        self.scheduler.running.clear()
        self.scheduler.waiting.clear()
        self.flights.clear()
        for runner in self.runners.values():
            with suppress(Exception):
                runner.close()
        self.runners.clear()
        self.keeper.end()
        self.kv = KvView()

    def count_kv(self) -> None:
        """Have the report say what conversations occupy now."""
        sizes: dict[str, int] = {}
        for runner in self.runners.values():
            runner.memory.changed = False
            for scope, size in runner.memory.nbytes_by_scope().items():
                sizes[scope] = sizes.get(scope, 0) + size
        self.keeper.publish()
        self.kv = KvView(sum(r.memory.nbytes() for r in self.runners.values()), tuple(sorted(sizes.items())))

    def look_at_kv(self) -> None:
        """Have the report say what conversations occupy, if something was made or given up."""
        if any(runner.memory.changed for runner in self.runners.values()):
            self.count_kv()


def concerns_several_tenants(requests: Iterable[Request]) -> bool:
    """Whether an error that all of them get may be about what another tenant sent."""
    return len({request.scope for request in requests}) > 1


def ended_by(error: BaseException, requests: Iterable[Request]) -> ClosedError:
    """The error of all who wait when the engine's thread ends by another one, which is said in the log."""
    if not isinstance(error, SystemExit):  # which no thread reports
        _log.critical("the engine's thread was ended by %s", named(error))
    ended = ClosedError(f"The engine's thread was ended by {type(error).__name__}. engine() starts a new one.")
    ended.__cause__ = None if concerns_several_tenants(requests) else error
    return ended


def no_number(request: Request) -> DeviceFailedError:
    """The error of a request whose scores are NaN."""
    return DeviceFailedError(
        f"The model gave NaN scores after {len(request.context)} tokens. What it had read was dropped. If other "
        "prompts end so too, its weights hold NaN, or are too large for their dtype: check the files, or load it with "
        'dtype="float32".'
    )


def too_large(runner: Runner, request: Request, models: tuple[ModelStatus, ...]) -> DeviceMemoryError:
    """The error of a request that can never have the memory that it needs."""
    budget, context = runner.memory.policy.budget, len(request.context)
    room = min(budget, runner.memory.shared.room())
    return DeviceMemoryError(
        f"A conversation of {context} tokens does not fit the {room} bytes that conversations may take, even alone. "
        "Shorten it, or allow more: configure(kv_bytes=...) or configure(memory_budget=...). "
        f"In memory: {who_holds_what(models)}.",
        tuple(str(model) for model in models if model.nbytes),
    )
