"""Estimates of the memory that a model will take on its device, before a byte of it is read."""

from __future__ import annotations

from dataclasses import replace

from langchain_gemma_jax.engine.base.draft_sources import MTP
from langchain_gemma_jax.engine.base.ladders import Ladders, TextLadder
from langchain_gemma_jax.engine.base.pages import PAGE
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.page_pool import attends_by_kernel, page_bytes
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.engine.residency.device_memory import kv_budget
from langchain_gemma_jax.engine.residency.ledger_entry import LedgerEntry
from langchain_gemma_jax.engine.residency.served import draft_sources, ladders_for, loop_steps
from langchain_gemma_jax.models.gemma.drafter import GemmaDrafter
from langchain_gemma_jax.models.loading.drafters import LoadedDrafter
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.opened import LoadPlan
from langchain_gemma_jax.models.mesh.counts import Fit
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.weights import total_bytes

ANY_WORKSPACE = 128 << 10  # bytes that the programs of the smallest model need
MOST_OF_HOST = 512 << 20  # bytes of the host's memory for a pool that is there from the beginning
MOST_PAGES = 1 << 16  # of each kind, for some millions of tokens
USUAL_CONTEXT = 4096  # tokens: the need for longer ones is measured when one comes


def shape_of(settings: Settings, model: LoadPlan | Model) -> Shape:
    """Return what the programs of a model are traced with."""
    kind = model.architecture.at(model.placement)
    context = min(settings.max_context or kind.max_context, kind.max_context)
    steps = loop_steps(settings, model.placement.platform)
    vocabulary = min(model.tokenizer.vocab_size, kind.vocab_size)
    bare = Shape(kind, model.recipe, vocabulary, context, PageCounts(1, 1, PAGE), loop_steps=steps)
    if kind.embeds:
        return bare
    ladders = ladders_for(settings, bare, model.placement.platform)
    entries = bare.paging.entries(longest_chunk(bare, ladders), context)
    bare = replace(bare, local_entries=entries, picks=ladders.picks, drafter=_drafter(settings, model))
    budget = kv_budget(settings, model.placement)
    if model.placement.memory_limit() is None and not attends_by_kernel(bare.layout, bare.recipe):
        budget = min(budget, MOST_OF_HOST)
    return replace(bare, pages=page_counts(bare, ladders, budget))


def _drafter(settings: Settings, model: LoadPlan | Model) -> GemmaDrafter | None:
    """Return the drafter that a model's programs are traced with. None: there is none, or it is not to be used."""
    own = model.drafter.drafter if isinstance(model.drafter, LoadedDrafter) else model.drafter
    sources = draft_sources(settings, model.recipe, drafter=own is not None)
    return own if MTP in sources else None


def page_counts(shape: Shape, ladders: Ladders, budget: int) -> PageCounts:
    """Return the pages of a model's pool: for what conversations may take, and at least for the longest one.

    Programs are compiled for these numbers, so they are powers of two, which a slightly other budget does not change.
    Where kernels attend, a page takes memory when it is written to, so each kind may have as many as fit the budget.
    Elsewhere all are there from the beginning, so there are fewer, in halves of what they may take.
    """
    sizes = page_bytes(shape.layout_of_a_device, shape.recipe.kv_dtype, shape.pages.slots)
    longest, entries = shape.paging.count(shape.max_context), shape.local_entries
    lazily = attends_by_kernel(shape.layout, shape.recipe)
    share = budget if lazily else budget // 2
    most = MOST_PAGES if lazily else 16 * ladders.rows[-1] * longest

    def count(size: int, least: int) -> int:
        return 1 + max(least, _power_of_two(min(share // size, most)))

    whole = count(sizes.whole, longest)
    local = count(sizes.local, entries) if sizes.local else 1
    return PageCounts(whole, local, shape.pages.slots)


def _power_of_two(number: int) -> int:
    """Return the largest power of two up to a number; 0 if there is none."""
    return 1 << number.bit_length() - 1 if number > 0 else 0


def entry_of(settings: Settings, plan: LoadPlan, shape: Shape) -> LedgerEntry:
    """Return the entry in the books of a model that will be read, and can be read again."""
    weights = weights_bytes(shape, plan.placement) + drafter_bytes(plan)
    return _entry(settings, plan, shape, weights, returns=True)


def fit_of(settings: Settings, plan: LoadPlan, budget: int) -> Fit:
    """Return what a model needs of each device, with a conversation of a usual length, and what each has."""
    shape = shape_of(settings, plan)
    ladders = ladders_for(settings, shape, plan.placement.platform)
    kv = bytes_of_conversation(shape, min(USUAL_CONTEXT, shape.max_context))
    return Fit(
        weights_bytes(shape, plan.placement) + drafter_bytes(plan) + first_workspace(shape, ladders) + kv, budget
    )


def entry_of_guest(settings: Settings, model: Model, shape: Shape) -> LedgerEntry:
    """Return the entry in the books of a model that a caller has loaded: it stays until it is unloaded."""
    return _entry(settings, model, shape, model.placement.nbytes(model.params) + drafter_bytes(model), returns=False)


def _entry(settings: Settings, model: LoadPlan | Model, shape: Shape, weights: int, *, returns: bool) -> LedgerEntry:
    ladders = ladders_for(settings, shape, model.placement.platform)
    return LedgerEntry(
        model.name,
        model.placement,
        weights=weights,
        floor=smallest_conversation(shape),
        workspace=first_workspace(shape, ladders),
        returns=returns,
        keep_alive=settings.keep_alive if returns else None,
        devices=len(model.placement.devices),
        chosen=model.chosen if isinstance(model, LoadPlan) else "",
    )


def weights_bytes(shape: Shape, where: Placement) -> int:
    """Return exactly what its weights will take, as they are stored, on each device of a place."""
    return where.nbytes(shape.architecture.abstract(shape.recipe))


def drafter_bytes(model: LoadPlan | Model) -> int:
    """Return the bytes of the drafter beside a model; 0 if there is none."""
    drafter = model.drafter
    if isinstance(drafter, LoadedDrafter):
        return drafter.nbytes
    return 0 if drafter is None else total_bytes(drafter.abstract())


def smallest_conversation(shape: Shape) -> int:
    """Return the bytes that the smallest conversation takes: 0 of a model that makes vectors of texts and has none.

    Where the whole pool is there from the beginning, it is that.
    """
    if shape.architecture.embeds:
        return 0
    if attends_by_kernel(shape.layout, shape.recipe):
        return bytes_of_conversation(shape, 1)
    sizes = page_bytes(shape.layout_of_a_device, shape.recipe.kv_dtype, shape.pages.slots)
    return shape.pages.whole * sizes.whole + shape.pages.local * sizes.local


def bytes_of_conversation(shape: Shape, tokens: int) -> int:
    """Return the bytes of a conversation's pages on each device."""
    sizes = page_bytes(shape.layout_of_a_device, shape.recipe.kv_dtype, shape.pages.slots)
    local = len(shape.paging.local(tokens))
    return shape.paging.count(tokens) * sizes.whole + local * sizes.local


def longest_chunk(shape: Shape, ladders: Ladders) -> int:
    """Return the most tokens that are read at once: of a prompt, or of a picture or sound."""
    encoders = shape.architecture.encoders
    return max(ladders.longest_chunk, *(each.read_at_once[1] for each in encoders), 0)


def first_workspace(shape: Shape, ladders: Ladders) -> int:
    """About what its programs need while they run. What they do need is known when they have been compiled."""
    if shape.architecture.embeds:
        at_once = max(TextLadder.AT_ONCE, shape.max_context)
        return ANY_WORKSPACE + 4 * shape.architecture.numbers_at_work(at_once, shape.max_context)
    seen = min(ladders.capacities[-1], USUAL_CONTEXT)
    chunk = shape.architecture.numbers_at_work(ladders.chunks[-1], seen)
    scores = 2 * max(ladders.rows[-1], ladders.draft + 1) * shape.architecture.vocab_size
    return ANY_WORKSPACE + 4 * max(chunk, scores)
