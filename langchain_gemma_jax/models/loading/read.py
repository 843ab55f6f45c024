"""The last step of loading: the weights, from open files to their devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.hub.progress import loading_bar
from langchain_gemma_jax.models.loading.model import Model, ReadFrom
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.seams.params import Params, leaves
from langchain_gemma_jax.models.seams.weights import total_bytes


def read(opened: Opened, plan: LoadPlan, *, progress: bool | None = None) -> Model:
    """Read the weights of a plan, and return the model.

    Args:
        opened: the files that were planned with.
        plan: of ``plan_model``.
        progress: whether to draw a progress bar. None: if standard error is a terminal.

    Raises:
        CheckpointError: the files cannot be used, or were written to meanwhile. Nothing stays on the device.
    """
    params = _params(opened, plan, progress=progress)
    return Model(
        plan.architecture,
        params,
        plan.tokenizer,
        plan.recipe,
        plan.name,
        plan.generation_defaults,
        plan.chat_format,
        placed=plan.placement,
        read_from=ReadFrom(plan.files, plan.vocabulary),
        encoders=plan.encoders,
    )


def read_again(opened: Opened, plan: LoadPlan, like: Model, *, progress: bool | None = None) -> Model:
    """Read the weights of a model that was closed, by ``opened.planned_again``. All else of it is kept."""
    return replace(like, params=_params(opened, plan, progress=progress))


def _params(opened: Opened, plan: LoadPlan, *, progress: bool | None) -> Params:
    with loading_bar(plan.name, total_bytes(plan.architecture.abstract(plan.recipe)), progress=progress) as advance:
        return read_unchanged(lambda: opened.read(plan, advance), plan.files)


def read_unchanged(reading: Callable[[], Params], files: Unchanged) -> Params:
    """Return the weights, if the files are now what they were before.

    Raises:
        CorruptCheckpointError: they were written to. Nothing stays on the device.
    """
    params = reading()
    try:
        files.check()
    except BaseException:
        for array in leaves(params):
            array.delete()
        raise
    return params
