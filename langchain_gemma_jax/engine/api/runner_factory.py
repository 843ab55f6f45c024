"""What a model runs in: its device, its conversations, the memory that it shares with others."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from langchain_gemma_jax.engine.base.guards import Guards
from langchain_gemma_jax.engine.base.metrics import Metrics
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.conversations.host_index import Parked
from langchain_gemma_jax.engine.conversations.host_memory import HostMemory
from langchain_gemma_jax.engine.conversations.host_store import Shelf
from langchain_gemma_jax.engine.conversations.kv_eviction import Policy
from langchain_gemma_jax.engine.conversations.kv_store import Memory
from langchain_gemma_jax.engine.conversations.transfer_costs import Costs
from langchain_gemma_jax.engine.device.sequence_kv import smallest_window
from langchain_gemma_jax.engine.device.transfers import Device
from langchain_gemma_jax.engine.executables.library import Library
from langchain_gemma_jax.engine.loop.owner import Owner
from langchain_gemma_jax.engine.residency.device_memory import host_kv_budget, kv_budget, memory_budget
from langchain_gemma_jax.engine.residency.ledger_entry import Entry
from langchain_gemma_jax.engine.residency.model_evictor import Keeper
from langchain_gemma_jax.engine.residency.model_record import Known
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.models.placement import Placement


@dataclass(frozen=True)
class Share:
    """A model's share of its device's memory."""

    keeper: Keeper
    entry: Entry

    def room(self) -> int:
        return self.keeper.pool.kv_room(self.entry)

    def more(self, missing: int) -> None:
        self.keeper.free(missing, self.entry)

    def gave_up(self, what: str, reason: str, nbytes: int, seconds: float) -> None:
        self.keeper.log.add(self.entry.name, what, reason, nbytes, seconds)


class Surroundings:
    """Makes them, for the models of one engine. Of each place there is one host memory, and one book of costs."""

    def __init__(self, owner: Owner, metrics: Metrics, guards: Guards, settings: Callable[[], Settings]) -> None:
        self._owner, self._metrics, self._guards, self._settings = owner, metrics, guards, settings
        self._parked = Parked(host_kv_budget(settings()))
        self._hosts: dict[Placement, tuple[HostMemory, Costs]] = {}
        self._budgets: dict[tuple[Hashable, object], int] = {}
        owner.keeper.pool.budget = self._budget

    def shelf(self, served: Served, where: Placement) -> Shelf:
        """A model's place in host memory."""
        if where not in self._hosts:
            self._hosts[where] = HostMemory(where), Costs()
        host, costs = self._hosts[where]
        return Shelf(served, host, self._parked, costs, self._metrics)

    def runner(self, known: Known, library: Library) -> Runner:
        """Make a model's runner: everything that belongs to the model on its device. Runs on the owner thread."""
        settings, served, shape, ladders = self._settings(), known.served, known.shape, known.ladders
        model, where = served.model, served.model.placement
        pool, home = self._owner.keeper.pool, known.entry.home
        window = smallest_window(shape.layout)
        device = Device(
            where,
            self._metrics,
            self._guards,
            ladders.program_keys(window),
            lambda: pool.used(home) - pool.budget(home),
        )
        policy = Policy(kv_budget(settings, where), settings.scope_share, max_snapshots=settings.max_snapshots)
        runners = self._owner.runners
        memory = Memory(
            shape,
            library,
            device,
            ladders,
            policy,
            self._metrics,
            # This must not refer to the runner: in a circle of references, weights stay until the next collection.
            lambda: [o.memory for key, o in runners.items() if key is not served and o.device.placement == where],
            Share(self._owner.keeper, known.entry),
            known.shelf,
        )
        return Runner(
            model.params, shape, ladders, device, memory, self._metrics, known.constraints, drafts=known.drafts
        )

    def _budget(self, home: Hashable) -> int:
        """Bytes of each device of a place. Asked of it once, and again when the setting was changed."""
        settings = self._settings()
        key = (home, settings.memory_budget)
        if key not in self._budgets:
            if not isinstance(home, Placement):
                raise TypeError(f"expected a placement, found {home!r}")
            self._budgets[key] = memory_budget(settings, home)
        return self._budgets[key]
