"""What the engine knows of a model, whether it is in memory or not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.program_key import ProgramKey
from langchain_gemma_jax.engine.conversations.host_store import Shelf
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.requests.model_grammars import Constraints
from langchain_gemma_jax.engine.residency.ledger_entry import Entry
from langchain_gemma_jax.engine.residency.served import Served

Stamp: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Source:
    """Where a model's weights can be read again."""

    folder: Path
    stamp: Stamp

    @classmethod
    def of(cls, folder: Path) -> Source:
        return cls(folder, stamp(folder))


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
    source: Source | None = None  # None: somebody else's model, which the engine cannot load again


def stamp(folder: Path) -> Stamp:
    """What changes when somebody writes other files into a folder."""
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                facts = entry.stat()
            except OSError:  # a link that leads nowhere
                continue
            found.append((entry.name, facts.st_size, facts.st_mtime_ns))
    return tuple(sorted(found))
