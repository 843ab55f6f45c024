"""What a model will take on its device, before a byte of it is read; and what a device has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from langchain_gemma_jax.engine.base.byte_sizes import parse_bytes
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.placement import Placement

SHARE = 0.9  # of a device's memory that is the engine's: the rest is for what allocators cannot fill
HOST_SHARE = 0.8  # the same where the device is the host, which runs other things too
ANY_WORKSPACE = 128 << 10  # bytes that the programs of the smallest model need
USUAL_CONTEXT = 4096  # tokens: how much they need to look at more is found when somebody does
HOST_KV_PARTS = 16  # of the machine's memory, one part in so many is for conversations that had to leave a device
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # a container's


def weights_bytes(shape: Shape, where: Placement) -> int:
    """Return exactly what its weights will take, as they are stored, on each device of a place."""
    return where.nbytes(shape.architecture.abstract(shape.recipe))


def smallest_conversation(shape: Shape, ladders: Ladders) -> int:
    """What the smallest conversation takes."""
    return sequence_kv.sequence_bytes(shape.layout, ladders.capacities[0], shape.max_context, shape.recipe.kv_dtype)


def first_workspace(shape: Shape, ladders: Ladders) -> int:
    """About what its programs need while they run. What they do need is known when they have been compiled."""
    seen = min(ladders.capacities[-1], USUAL_CONTEXT)
    chunk = shape.architecture.numbers_at_work(ladders.chunks[-1], seen)
    scores = 2 * max(ladders.rows[-1], ladders.draft + 1) * shape.architecture.vocab_size
    return ANY_WORKSPACE + 4 * max(chunk, scores)


def memory_budget(settings: Settings, where: Placement) -> int:
    """Bytes of each device of a place that models and their conversations may take together."""
    if settings.memory_budget is not None:
        return parse_bytes("memory_budget", settings.memory_budget)
    if (limit := where.memory_limit()) is not None:
        return int(SHARE * limit)
    return int(HOST_SHARE * host_memory()) // len(where.devices)


def host_kv_budget(settings: Settings) -> int:
    """Bytes of host memory for conversations that had to leave their device."""
    if settings.host_kv_bytes is not None:
        return settings.host_kv_bytes
    return host_memory() // HOST_KV_PARTS


def host_memory(limits: Sequence[Path] = LIMITS) -> int:
    """The machine's memory, or what a container may have of it."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in limits:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # there is no such file; or "max"
            continue
    return min(found)
