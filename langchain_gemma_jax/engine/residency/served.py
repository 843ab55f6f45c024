"""``Served``: a model that the engine serves, with its limits; and the defaults of a model's ladders and drafts."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_gemma_jax.engine.base.draft_sources import MTP, SOURCES, checked_sources
from langchain_gemma_jax.engine.base.ladders import Ladders
from langchain_gemma_jax.engine.base.settings import Settings
from langchain_gemma_jax.engine.device.page_pool import attends_by_kernel
from langchain_gemma_jax.engine.device.programs import Shape
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.seams.recipe import Recipe
from langchain_gemma_jax.models.seams.weights import Form

KERNEL_CHUNKS = (16, 256)  # where kernels skip padding, one large chunk serves every prompt
CPU_CHUNKS = (16, 128)  # where XLA multiplies by padding too
ACCELERATOR_CHUNKS = (16, 512)
LOOP_STEPS = 8


@dataclass(frozen=True, eq=False)
class Served:
    """A model that the engine serves. Pass it to ``submit``."""

    model: Model
    number: int
    max_context: int  # tokens of prompt and answer together
    stop_ids: frozenset[int]  # ids that end a turn, from the tokenizer and the checkpoint's generation_config.json

    @property
    def name(self) -> str:
        return self.model.name

    def __repr__(self) -> str:
        return f"Served({self.name!r}, max_context={self.max_context})"


def stop_ids(model: Model) -> frozenset[int]:
    """Return the ids that end a model's turn."""
    declared = model.generation_defaults.get("eos_token_id", ())
    found = [declared] if isinstance(declared, int) else declared if isinstance(declared, list) else []
    own = {token for token in found if isinstance(token, int) and not isinstance(token, bool)}
    return frozenset(own | set(model.tokenizer.eos_ids) | set(model.architecture.eos_ids))


def ladders_for(settings: Settings, shape: Shape, platform: str) -> Ladders:
    """Return the ladders of a model on this platform."""
    context = shape.max_context
    if not attends_by_kernel(shape.layout, shape.recipe):
        chunks = CPU_CHUNKS if platform == "cpu" else ACCELERATOR_CHUNKS
        return (settings.ladders or Ladders(chunks=chunks)).for_context(context)
    skips = not shape.recipe.storage.dense or shape.recipe.layers.many_rows is Form.KERNEL
    ladders = settings.ladders or Ladders(chunks=KERNEL_CHUNKS if skips else CPU_CHUNKS)
    return ladders.for_context(context).for_kernels(padding_is_free=skips)


def loop_steps(settings: Settings, backend: str) -> int:
    """Return the steps in a dispatch: one on the CPU, where XLA runs the body of a loop without its fast paths."""
    return settings.loop_steps or (1 if backend == "cpu" else LOOP_STEPS)


def draft_sources(settings: Settings, recipe: Recipe, *, drafter: bool) -> tuple[str, ...]:
    """Return the sources of a model's drafts: those that are set, else all or none of them.

    ``drafter``: there is a drafter beside the model, without which it is no source.

    There are none where the matrices are multiplied with each row separately: several tokens then cost as much as
    several steps.
    """
    chosen = checked_sources(settings.drafts)
    if chosen is None:
        chosen = () if Form.EACH_ROW in {recipe.layers.few_rows, recipe.embed.few_rows} else SOURCES
    return tuple(name for name in chosen if drafter or name != MTP)
