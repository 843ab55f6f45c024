"""The second step of loading: plan the model and its devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax

from langchain_gemma_jax.models.configuration.how_to_load import HowToLoad
from langchain_gemma_jax.models.loading.opened import LoadPlan, Opened
from langchain_gemma_jax.models.mesh.counts import Fit, beyond_its_share, encoders_on_each, plan_for, weights_alone
from langchain_gemma_jax.models.seams.placement import Placement, placement_of
from langchain_gemma_jax.models.seams.recipe import Recipe


@dataclass(frozen=True)
class Devices:
    """The devices that a model may be put on, and the memory that it may take there."""

    where: jax.Device | Placement | None = None  # None: JAX's first device
    among: Sequence[jax.Device] | None = None  # the devices to divide it among; None: those of this process
    replica: int = 0  # index of this replica; the devices of the replicas before it are skipped
    measure: Callable[[LoadPlan], Fit] = weights_alone  # bytes that a plan needs of each device, and that each has


def plan_model(opened: Opened, how: HowToLoad, devices: Devices, recipe: Recipe | None = None) -> LoadPlan:
    """Plan a model of open files: its recipe, its placement, and everything else but its weights.

    Args:
        opened: the files.
        how: the caller's options.
        devices: the devices that it may be put on.
        recipe: the memory layout and the products of matrices. None: the fastest here.

    Raises:
        CheckpointError, InputError, UnsupportedModelError: the files cannot be used, or not with these options.
        DevicesError: the model cannot be divided among this number of devices.
    """
    at, count, replica = opened.planned(how, recipe), how.devices, devices.replica
    here = list(devices.among if devices.among is not None and opened.among_hosts else jax.local_devices())
    left = here[replica * (count if isinstance(count, int) else 1) :]
    if count is None:
        return at(placement_of(left[0] if replica else devices.where))
    plan, chosen = plan_for(count, opened.name, opened.why_not, at, devices.measure, left)
    whole = beyond_its_share(plan.placement, plan.architecture.abstract(plan.recipe))
    seeing = 0 if plan.encoders is None else plan.encoders.nbytes_of_all(plan.recipe.dtype)
    return replace(plan, chosen=chosen + whole + encoders_on_each(plan.placement, seeing))
