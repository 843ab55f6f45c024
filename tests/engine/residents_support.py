"""Three tiny models in folders of their own, and budgets that so many of them fit."""

from __future__ import annotations

import gc
from pathlib import Path

import jax

from langchain_gemma_jax.engine.api.engine import Engine
from langchain_gemma_jax.engine.residency.model_status import ModelStatus
from langchain_gemma_jax.engine.residency.served import Served
from langchain_gemma_jax.models.seams.placement import SingleDevice
from tests.engine.tiny import settle
from tests.tiny_gemma import tiny_gemma

SEEDS = (0, 1, 2)
PROMPT = list(range(10, 40))


def folders_in(place: Path) -> list[Path]:
    """Three models of one shape with other weights."""
    found = []
    for seed in SEEDS:
        folder = place / f"model-{seed}"
        folder.mkdir()
        for name, content in tiny_gemma(seed=seed).items():
            (folder / name).write_bytes(content)
        found.append(folder)
    return found


def need_of(engine: Engine, folder: Path) -> int:
    """Return the bytes that a model of this shape needs before it can be loaded, as the engine predicts them."""
    served = engine.load(folder)
    need = engine._owner.models.known[served].entry.need
    engine.unload(served)
    return need


def status(engine: Engine, served: Served) -> ModelStatus:
    """Return the engine's status of a model, when its books are up to date."""
    settle(engine)
    entry = engine._owner.models.known[served].entry
    return next(s for e, s in zip(engine._owner.evictor.ledger.entries, engine.models(), strict=True) if e is entry)


def on_device() -> int:
    """Bytes of all arrays on the device."""
    return SingleDevice(jax.local_devices()[0]).bytes_in_use()


def baseline() -> int:
    """The same, when what other tests left in circles is collected."""
    gc.collect()
    return on_device()


def constants(engine: Engine) -> int:
    """Bytes that runners keep on the device beside weights and conversations: what nobody's rows are sampled with."""
    return sum(
        leaf.nbytes
        for runner in engine._owner.models.runners.values()
        for leaf in jax.tree.leaves((runner.knobs._all_allowed, runner.device._kept))
    )


def is_there(engine: Engine, served: Served) -> bool:
    """Return True if a model is in memory."""
    return status(engine, served).resident
