"""``KnownModels``: the engine's models, in memory or not, and the runners of those in memory."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.host_store import HostStore
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.drafting.model_drafts import ModelDrafts
from langchain_gemma_jax.engine.requests.model_grammars import ModelGrammars
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry, meet
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.engine.steps.runner import Runner
from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.placement import Placement


@dataclass(eq=False)
class KnownModel:
    """A served model, without its weights, programs and conversations on the device."""

    served: Served
    shape: Shape
    ladders: Ladders
    grammars: ModelGrammars
    drafts: ModelDrafts
    entry: LedgerEntry
    host_store: HostStore = field(repr=False)
    programs: tuple[ProgramKey, ...] = ()  # the first programs that it ran: they are needed when it is loaded again
    files: Unchanged | None = (
        None  # the files to read it from again. None: the caller's own model, which the engine cannot load
    )


class KnownModels:
    """The models of one engine. The owner thread changes this, in steps that are atomic; any thread may read it."""

    def __init__(self) -> None:
        self.known: dict[Hashable, KnownModel] = {}  # by ``Served``
        self.runners: dict[Hashable, Runner] = {}  # of models in memory, by ``Served``
        self.replicas: dict[Hashable, tuple[Served, ...]] = {}  # by the first of them

    def of(self, served: Served) -> KnownModel:
        """Return a model's record.

        Raises:
            InputError: it is not served by this engine.
        """
        found: object = served
        if not isinstance(found, Served) or (known := self.known.get(found)) is None:
            raise InputError(f"{found!r} is not served by this engine. Use what its load() or serve() gave.")
        return known

    def all_of(self, served: Served) -> tuple[KnownModel, ...]:
        """Return the records of a model and its replicas.

        Raises:
            InputError: it is not served by this engine.
        """
        first = self.of(served)
        return tuple(self.known[member] for member in self.replicas.get(served, ())) or (first,)

    def join(self, members: tuple[Served, ...]) -> None:
        """Note that these are replicas of one model, which the first one stands for."""
        self.replicas[members[0]] = members
        for number, member in enumerate(members, 1):
            entry = self.known[member].entry
            entry.chosen = ", ".join(filter(None, [entry.chosen, f"replica {number} of {len(members)}"]))

    def with_entry(self, entry: LedgerEntry) -> KnownModel:
        """Return the model of a ledger's entry."""
        return next(known for known in self.known.values() if known.entry is entry)

    def served_as(self, model: Model) -> Served | None:
        """Return the ``Served`` of a model; None if it is not served."""
        return next((known.served for known in list(self.known.values()) if known.served.model is model), None)

    def running_at(self, home: Hashable) -> list[Runner]:
        """Return the runners of the models in memory on any device of a placement."""
        return [runner for runner in self.runners.values() if meet(runner.device.placement, home)]

    def others_at(self, served: Served, where: Placement) -> list[Runner]:
        """Return the runners of the other models in memory on any device of a placement."""
        return [
            runner for key, runner in self.runners.items() if key is not served and meet(runner.device.placement, where)
        ]
