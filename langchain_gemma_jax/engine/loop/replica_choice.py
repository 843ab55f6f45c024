"""The choice of a model's replica for a request: the one with its conversation, or the least busy one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator

from langchain_gemma_jax.engine.conversations.prefix_index import Reuse, Rings
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Request


class ReplicaChoice:
    """Spreads a model's requests among its replicas. For the owner thread, which has their conversations."""

    def __init__(self, work: WorkInHand) -> None:
        self._work = work
        self._chosen: Counter[Hashable] = Counter()  # the number of requests for each
        self._rings: dict[Hashable, Rings] = {}  # of replicas that have been in memory

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
            index = runner.kv_store.index
            self._rings[member] = index.rings
            yield index.plan(keys, scope)
        if (rings := self._rings.get(member)) is not None:
            yield self._work.models.known[member].host_store.plan(keys, scope, rings)


def _is_all_of_it(plan: Reuse, system: int) -> bool:
    """Return True if a whole conversation would be reused, which is longer than the system prompt."""
    return plan.source is not None and system < plan.length == len(plan.source.keys)
