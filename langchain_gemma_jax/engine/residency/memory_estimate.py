"""What a model will take on its device, before a byte of it is read; and what is on a device."""

from __future__ import annotations

import jax

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.abstract import abstract, total_bytes

ANY_WORKSPACE = 128 << 10  # bytes that the programs of the smallest model need
USUAL_CONTEXT = 4096  # tokens: how much they need to look at more is found when somebody does


def weights_bytes(shape: Shape) -> int:
    """Exactly what its weights will take."""
    return total_bytes(abstract(shape.config, shape.recipe.dtype, shape.recipe.layout))


def smallest_conversation(shape: Shape, ladders: Ladders) -> int:
    """What the smallest conversation takes."""
    return sequence_kv.sequence_bytes(shape.config, ladders.capacities[0], shape.max_context, shape.recipe.dtype)


def first_workspace(shape: Shape, ladders: Ladders) -> int:
    """About what its programs need while they run. What they do need is known when they have been compiled."""
    config = shape.config
    widest = max(2 * layer.ffw_width + config.heads * layer.head_dim for layer in config.layers)
    seen = min(ladders.capacities[-1], USUAL_CONTEXT)
    chunk = ladders.chunks[-1] * (widest + 2 * config.width + config.heads * seen)
    scores = 2 * max(ladders.rows[-1], ladders.draft + 1) * config.vocab_size
    return ANY_WORKSPACE + 4 * max(chunk, scores)


def bytes_in_use(device: jax.Device) -> int:
    """What is on a device, by whoever: by its own statistics, or by JAX's list of arrays where it keeps none."""
    statistics = device.memory_stats()
    if statistics and "bytes_in_use" in statistics:
        return int(statistics["bytes_in_use"])
    default = device.default_memory().kind
    here = (array for array in jax.live_arrays() if array.sharding.memory_kind == default)
    return sum(array.nbytes for array in here if array.devices() == {device})
