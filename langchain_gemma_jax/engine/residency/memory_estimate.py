"""What a model will take on its device, before a byte of it is read; and what is on a device."""

from __future__ import annotations

from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.placement import Placement

ANY_WORKSPACE = 128 << 10  # bytes that the programs of the smallest model need
USUAL_CONTEXT = 4096  # tokens: how much they need to look at more is found when somebody does


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
