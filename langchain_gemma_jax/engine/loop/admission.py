"""Admission of requests: they wait for their turn, for their model, and for memory. For the owner thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from langchain_gemma_jax.engine.conversations.prefix_index import Reuse, common_prefix
from langchain_gemma_jax.engine.host.error_copies import again
from langchain_gemma_jax.engine.loop.failures import Failures, too_large
from langchain_gemma_jax.engine.loop.request_endings import RequestEndings
from langchain_gemma_jax.engine.loop.results import Results
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.prompt import whole_media
from langchain_gemma_jax.engine.requests.request import Request, Stage, deadline_error
from langchain_gemma_jax.engine.residency.ledger_entry import State
from langchain_gemma_jax.engine.residency.model_evictor import ModelEvictor
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import CancelledRequestError, ClosedError


class ReplicaChoice:
    """Spreads a model's requests among its replicas. For the owner thread, which has their conversations."""

    def __init__(self, work: WorkInHand) -> None:
        self._work = work
        self._chosen: Counter[Hashable] = Counter()  # the number of requests for each

    def of(self, request: Request) -> Hashable:
        """Return the replica for a request; the model itself, if it has no replicas."""
        members = self._work.models.replicas.get(request.asked.model, ())
        if not members:
            return request.asked.model
        plans = {member: list(self._plans(member, request)) for member in members}
        on = [member for member in members if any(_is_all_of_it(plan, request.asked.system) for plan in plans[member])]
        if on:  # it continues a whole conversation
            return self._noted(max(on, key=lambda member: max(plan.length for plan in plans[member])))
        scheduler, runners = self._work.scheduler, self._work.models.runners
        running = Counter(other.asked.model for other in [*scheduler.running, *scheduler.waiting])
        # A replica that is not in memory counts as having one request more: it was evicted for a reason.
        busy = {member: running[member] + (member not in runners) for member in members}
        held = {member: max(plan.common for plan in plans[member]) for member in members}
        prompt, system = len(request.asked.prompt), request.asked.system
        nearest, idlest = max(members, key=lambda member: held[member]), min(busy.values())
        # A common beginning of several conversations is no reason to send all to one replica while others are idle.
        if busy[nearest] == idlest and held[nearest] > system and 2 * (held[nearest] - system) >= prompt - system:
            return self._noted(nearest)
        return self._noted(min(members, key=lambda member: (busy[member], self._chosen[member])))

    def _noted(self, member: Hashable) -> Hashable:
        self._chosen[member] += 1
        return member

    def _plans(self, member: Hashable, request: Request) -> Iterator[Reuse]:
        """Yield plans of what a request could reuse from a replica: on its device, and in host memory."""
        keys, scope = request.keys(), request.asked.scope
        yield Reuse()
        if (runner := self._work.models.runners.get(member)) is not None:
            yield runner.kv_store.index.plan(keys, scope)
        yield self._work.models.known[member].host_store.plan(keys, scope)


def _is_all_of_it(plan: Reuse, system: int) -> bool:
    """Return True if a whole conversation would be reused, which is longer than the system prompt."""
    return plan.source is not None and system < plan.length == len(plan.source.keys)


class Admission:
    """Admits requests in order while there is memory, and removes those that were cancelled or are overdue."""

    def __init__(
        self, work: WorkInHand, endings: RequestEndings, failures: Failures, results: Results, evictor: ModelEvictor
    ) -> None:
        self._work, self._endings, self._failures = work, endings, failures
        self._results, self._evictor, self._replicas = results, evictor, ReplicaChoice(work)

    def take_in(self, request: Request) -> None:
        """Add a request to the waiting ones. If that fails, the request gets the error."""
        try:
            self._take_in(request)
        except Exception as error:  # noqa: BLE001  any error of one request, such as in its grammar
            self._endings.refuse_one(request, error)

    def tidy(self) -> None:
        """End requests that were cancelled or whose deadline has passed."""
        now, scheduler = time.monotonic(), self._work.scheduler
        for request in [*scheduler.running, *scheduler.waiting]:
            if request.overdue(now):  # first: its caller has canceled it, and it counts as too late
                self._endings.finish(request, deadline_error(request, self._work.standstills))
            elif request.cancelled.is_set():
                self._endings.finish(request, CancelledRequestError("The request was cancelled."))

    def admit(self) -> None:
        """Give waiting requests memory, in order, while there is some. Those that only read ahead come last."""
        scheduler = self._work.scheduler
        for request in sorted(scheduler.waiting, key=lambda each: each.asked.ahead):
            if not scheduler.has_room and not self._make_way(request):
                return
            if (runner := self._runner_for(request)) is None:
                continue
            reuse = runner.kv_store.plan(request)
            runner.device.asked_by = (request.asked,)
            if will_be_shared(request, scheduler.running, reuse) or runner.kv_store.awaits(request, reuse):
                continue
            try:
                equipped = runner.media_are_there(request) and runner.rows.there(request)
            except Exception as error:  # noqa: BLE001  its encoders cannot be read
                self._endings.finish(request, again(error))
                continue
            if equipped is False:
                continue
            try:
                taken = equipped is not None and runner.kv_store.take(request, reuse)
            except Exception as error:  # noqa: BLE001
                self._failures.drop_half_done(runner)
                self._failures.fail(error, (request,))
                return
            if taken:
                self._start(request)
            elif self._make_way(request) or scheduler.running or self._waits_for_others(request):
                return
            else:
                self._endings.finish(request, too_large(runner, request, self._evictor.statuses()))

    def _make_way(self, request: Request) -> bool:
        """End the requests that are read ahead for one that needs their place. Return True if there was one."""
        found = [other for other in self._work.scheduler.running if other.gives_way]
        if request.asked.ahead:
            return False
        for other in found:
            self._endings.finish(other, CancelledRequestError("What was read ahead made way for another request."))
        return bool(found)

    def _waits_for_others(self, request: Request) -> bool:
        """Return True if memory may become free although no request runs.

        The last dispatch of a request that has ended may still be in flight: until it is home its model is in use.
        """
        return bool(self._work.flights) or self._evictor.may_change(request.asked.model)

    def _take_in(self, request: Request) -> None:
        """Let a request wait, or answer it at once: its model was unloaded, or its grammar forces the whole answer."""
        if request.asked.model in self._work.models.known:
            if (replica := self._replicas.of(request)) is not request.asked.model:
                request.asked = replace(request.asked, model=replica)
            if (end := self._results.go_on(request)) is None:
                self._work.scheduler.waiting.append(request)
            else:  # the grammar forced the whole answer
                self._endings.answer(request, request.completion(end.reason, end.stop, time.monotonic()))
        else:
            gone = ClosedError("The model was unloaded before the request was begun. Serve it again.")
            self._endings.answer(request, gone)

    def _start(self, request: Request) -> None:
        """Start a request that has got its memory."""
        work = self._work
        work.scheduler.start(request)
        work.inbox.begun(request)
        request.progress.stages.become(Stage.READING)
        if request.progress.started_at is None:
            request.progress.started_at, request.progress.compiles_before = time.monotonic(), work.compiles.compiles
            work.metrics.reused_tokens += request.progress.reused

    def _runner_for(self, request: Request) -> Runner | None:
        """Return the runner of a request's model. None: it cannot run now; a model not in memory will be loaded."""
        known = self._work.models.known[request.asked.model]
        if (runner := self._work.models.runners.get(request.asked.model)) is None:
            self._evictor.queue.want(known)
            loads = known.entry.state is State.LOADING
            request.progress.stages.become(Stage.LOADING if loads else Stage.NO_ROOM)
            return None
        request.progress.stages.become(Stage.QUEUED)
        if not self._evictor.may_run(known, time.monotonic()):
            return None
        return runner


WORTH_WAITING = 64  # common tokens that another request is reading, for which a prompt waits


def will_be_shared(request: Request, running: Iterable[Request], reuse: Reuse) -> bool:
    """Return True if another request is reading this one's beginning, so that it is better to wait for it.

    ``reuse``: what it could reuse now.
    """
    asked = request.asked
    readers = [r for r in running if r.to_read > 1 and r.group == request.group and r.asked.scope == asked.scope]
    if not readers:
        return False
    prompt = asked.prompt.keys.tobytes()
    for reader in readers:
        limit = min(len(asked.prompt), len(reader.asked.prompt)) - 1
        common = whole_media(asked.prompt.keys, common_prefix(prompt, reader.asked.prompt.keys, limit))
        waits = common in reader.progress.marks  # it keeps waiting while the common part is being read
        if reader.held < common and (waits or common - reuse.length >= WORTH_WAITING):
            reader.progress.marks.add(common)
            reader.progress.awaited = reader.progress.awaited or not asked.ahead
            return True
    return False
