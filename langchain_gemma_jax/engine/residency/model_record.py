"""What the engine knows of a model, whether it is in memory or not."""

from __future__ import annotations

from dataclasses import dataclass, field

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.host_store import Shelf
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.requests.model_grammars import Constraints
from langchain_gemma_jax.engine.residency.ledger_entry import Entry
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged


@dataclass(eq=False)
class Known:
    """A model that is served. All but its weights, its programs and its conversations on the device."""

    served: Served
    shape: Shape
    ladders: Ladders
    constraints: Constraints
    drafts: bool
    entry: Entry
    shelf: Shelf = field(repr=False)
    programs: tuple[ProgramKey, ...] = ()  # that it ran first when it was in memory: they are needed when it is back
    files: Unchanged | None = (
        None  # where it can be read again. None: somebody else's model, which the engine cannot load
    )
