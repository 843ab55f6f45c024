"""Estimates of the memory that a model will take on its device, before a byte of it is read."""

from __future__ import annotations

from langchain_gemma_jax.engine.base.ladders import Ladders, TextLadder
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry
from langchain_gemma_jax.engine.residency.served import ladders_for, loop_steps
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.mesh.counts import Fit
from langchain_gemma_jax.models.seams.placement import Placement

ANY_WORKSPACE = 128 << 10  # bytes that the programs of the smallest model need
USUAL_CONTEXT = 4096  # tokens: how much they need to look at more is found when somebody does


def shape_of(settings: Settings, model: LoadPlan | Model) -> Shape:
    """Return what the programs of a model are traced with."""
    kind = model.architecture.at(model.placement)
    context = min(settings.max_context or kind.max_context, kind.max_context)
    steps = loop_steps(settings, model.placement.platform)
    return Shape(kind, model.recipe, min(model.tokenizer.vocab_size, kind.vocab_size), context, steps)


def entry_of(settings: Settings, plan: LoadPlan, shape: Shape) -> LedgerEntry:
    """Return the entry in the books of a model that will be read, and can be read again."""
    weights = weights_bytes(shape, plan.placement)
    return _entry(settings, plan, shape, weights, returns=True)


def fit_of(settings: Settings, plan: LoadPlan, budget: int) -> Fit:
    """Return what a model needs of each device, with a conversation of a usual length, and what each has."""
    shape = shape_of(settings, plan)
    ladders = ladders_for(settings, shape.max_context, plan.placement.platform)
    capacity = ladders.capacity(min(USUAL_CONTEXT, shape.max_context))
    kv = sequence_kv.sequence_bytes(shape.layout_of_a_device, capacity, shape.max_context, shape.recipe.kv_dtype)
    return Fit(weights_bytes(shape, plan.placement) + first_workspace(shape, ladders) + kv, budget)


def entry_of_guest(settings: Settings, model: Model, shape: Shape) -> LedgerEntry:
    """Return the entry in the books of a model that somebody else has loaded: it stays until it is unloaded."""
    return _entry(settings, model, shape, model.placement.nbytes(model.params), returns=False)


def _entry(settings: Settings, model: LoadPlan | Model, shape: Shape, weights: int, *, returns: bool) -> LedgerEntry:
    ladders = ladders_for(settings, shape.max_context, model.placement.platform)
    return LedgerEntry(
        model.name,
        model.placement,
        weights=weights,
        floor=smallest_conversation(shape, ladders),
        workspace=first_workspace(shape, ladders),
        returns=returns,
        keep_alive=settings.keep_alive if returns else None,
        devices=len(model.placement.devices),
        chosen=model.chosen if isinstance(model, LoadPlan) else "",
    )


def weights_bytes(shape: Shape, where: Placement) -> int:
    """Return exactly what its weights will take, as they are stored, on each device of a place."""
    return where.nbytes(shape.architecture.abstract(shape.recipe))


def smallest_conversation(shape: Shape, ladders: Ladders) -> int:
    """Bytes that the smallest conversation takes: 0 of a model that makes vectors of texts and has none."""
    if shape.architecture.embeds:
        return 0
    layout, context = shape.layout_of_a_device, shape.max_context
    return sequence_kv.sequence_bytes(layout, ladders.capacities[0], context, shape.recipe.kv_dtype)


def first_workspace(shape: Shape, ladders: Ladders) -> int:
    """About what its programs need while they run. What they do need is known when they have been compiled."""
    if shape.architecture.embeds:
        at_once = max(TextLadder.AT_ONCE, shape.max_context)
        return ANY_WORKSPACE + 4 * shape.architecture.numbers_at_work(at_once, shape.max_context)
    seen = min(ladders.capacities[-1], USUAL_CONTEXT)
    chunk = shape.architecture.numbers_at_work(ladders.chunks[-1], seen)
    scores = 2 * max(ladders.rows[-1], ladders.draft + 1) * shape.architecture.vocab_size
    return ANY_WORKSPACE + 4 * max(chunk, scores)
