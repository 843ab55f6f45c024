"""Which replica of a model takes a request: the one that holds its conversation, or the one with the least to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from langchain_gemma_jax.engine.conversations.prefix_index import Rings
from langchain_gemma_jax.engine.loop.work_in_hand import WorkInHand
from langchain_gemma_jax.engine.requests.request import Request


class ReplicaChoice:
    """Spreads the requests for a model among its replicas. For the owner thread, which knows what each holds."""

    def __init__(self, work: WorkInHand) -> None:
        self._work = work
        self._chosen: Counter[Hashable] = Counter()  # how often each was
        self._rings: dict[Hashable, Rings] = {}  # of replicas that were in memory once

    def of(self, request: Request) -> Hashable:
        """Return the replica that takes a request; the model itself, if it has none."""
        members = self._work.models.replicas.get(request.asked.model, ())
        if not members:
            return request.asked.model
        held = {member: self._held(member, request) for member in members}
        nearest = max(members, key=lambda member: held[member])
        prompt, system = len(request.asked.prompt), request.asked.system
        # What several conversations begin with is no reason to send all of them to one replica.
        if (held[nearest] > system and 2 * (held[nearest] - system) >= prompt - system) or self._goes_on(
            nearest, request
        ):
            return self._noted(nearest)
        scheduler, runners = self._work.scheduler, self._work.models.runners
        busy = Counter(other.asked.model for other in [*scheduler.running, *scheduler.waiting])
        # One that is not in memory counts as if it had one request more: there is a reason that it had to go.
        return self._noted(
            min(members, key=lambda member: (busy[member] + (member not in runners), self._chosen[member]))
        )

    def _noted(self, member: Hashable) -> Hashable:
        self._chosen[member] += 1
        return member

    def _held(self, member: Hashable, request: Request) -> int:
        """How many first tokens of a request a replica has, on its device or on the host."""
        keys, scope = request.keys(), request.asked.scope
        on_device, known = 0, self._work.models.known[member]
        if (runner := self._work.models.runners.get(member)) is not None:
            index = runner.kv_store.index
            self._rings[member] = index.rings
            on_device = index.plan(keys, scope).common
        rings = self._rings.get(member)
        return on_device if rings is None else max(on_device, known.host_store.reach(keys, scope, rings))

    def _goes_on(self, member: Hashable, request: Request) -> bool:
        """Whether a request goes on from all that was said in a conversation that a replica has on its device."""
        runner = self._work.models.runners.get(member)
        if runner is None:
            return False
        reuse = runner.kv_store.index.plan(request.keys(), request.asked.scope)
        return reuse.source is not None and 0 < len(reuse.source.keys) == reuse.length
