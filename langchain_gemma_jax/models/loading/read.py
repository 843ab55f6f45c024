"""The last step of loading: read the weights from open files to their devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.hub.progress import loading_bar
from langchain_gemma_jax.models.loading.drafters import LoadedDrafter
from langchain_gemma_jax.models.loading.map_weights import map_weights
from langchain_gemma_jax.models.loading.model import Model, ReadFrom
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.mapped.weight_files import Draft, WeightFiles
from langchain_gemma_jax.models.seams.params import Params, leaves
from langchain_gemma_jax.models.seams.weights import total_bytes


def read(
    opened: Opened, plan: LoadPlan, *, progress: bool | None = None, weight_files: WeightFiles | None = None
) -> Model:
    """Read the weights of a plan, and return the model.

    Args:
        opened: the files that the plan was made with.
        plan: the result of ``plan_model``.
        progress: True to draw a progress bar. None: if standard error is a terminal.
        weight_files: the folder of files to be mapped, where a CPU finds the weights or leaves them. None: they are
            read to this process's own memory.

    Raises:
        CheckpointError: the files cannot be used, or changed while they were read. Nothing stays on the device.
    """
    params, not_mapped = _params(opened, plan, weight_files, progress=progress)
    drafter = _drafter(opened, plan, params)
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
        drafter=drafter,
        not_mapped=not_mapped,
    )


def read_again(
    opened: Opened,
    plan: LoadPlan,
    like: Model,
    *,
    progress: bool | None = None,
    weight_files: WeightFiles | None = None,
) -> Model:
    """Read the weights of a closed model, by the plan of ``opened.planned_again``. Its other parts are kept."""
    params, not_mapped = _params(opened, plan, weight_files, progress=progress)
    return replace(like, params=params, not_mapped=not_mapped, drafter=_drafter(opened, plan, params))


def _params(
    opened: Opened, plan: LoadPlan, weight_files: WeightFiles | None, *, progress: bool | None
) -> tuple[Params, str]:
    """Return the weights, and the reason why they are not mapped."""
    found = map_weights(opened, plan, weight_files)
    draft, mapped, why = None, None, ""
    match found:
        case str():
            why = found
        case Draft():
            draft, mapped = found, found.arrays
        case _:
            mapped = found
    try:
        with loading_bar(plan.name, total_bytes(plan.architecture.abstract(plan.recipe)), progress=progress) as advance:
            params = read_unchanged(lambda: opened.read(plan, advance, mapped), plan.files)
    except BaseException:
        if draft is not None:
            draft.drop()
        raise
    if draft is not None:
        draft.keep(plan.name)
    return params, why


def _drafter(opened: Opened, plan: LoadPlan, params: Params) -> LoadedDrafter | None:
    """Return the drafter beside a model whose weights were read. After an error, these do not stay either."""
    try:
        return opened.read_drafter(plan)
    except BaseException:
        for array in leaves(params):
            array.delete()
        raise


def read_unchanged(reading: Callable[[], Params], files: Unchanged) -> Params:
    """Return the weights, after a check that the files did not change while they were read.

    Raises:
        CorruptCheckpointError: they did. Nothing stays on the device.
    """
    params = reading()
    try:
        files.check()
    except BaseException:
        for array in leaves(params):
            array.delete()
        raise
    return params
