"""The number of devices that a model is divided among: as the caller asked, or the fewest on which it fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Protocol, TypeAlias, TypeVar

import jax

from langchain_gemma_jax.errors import DevicesError, InputError
from langchain_gemma_jax.models.configuration.division import WhyNot, working_counts
from langchain_gemma_jax.models.mesh.device_mesh import DeviceMesh
from langchain_gemma_jax.models.seams.architecture import Architecture
from langchain_gemma_jax.models.seams.placement import Placement, SingleDevice
from langchain_gemma_jax.models.seams.recipe import Recipe

AUTO = "auto"
MOST = 2**16  # devices that a caller can ask for

Plan = TypeVar("Plan")


@dataclass(frozen=True)
class Fit:
    """Memory of a model in one placement, in bytes: the need of each device, and what each has for it."""

    needs: int
    has: int


Measure: TypeAlias = Callable[[Plan], Fit]
"""Measures a plan without reading a weight."""


class Planned(Protocol):
    """The facts on a model in a placement before its weights are read."""

    @property
    def architecture(self) -> Architecture: ...
    @property
    def recipe(self) -> Recipe: ...
    @property
    def placement(self) -> Placement: ...


def checked_devices(asked: object, device: object = None) -> int | str | None:
    """Return the argument ``devices`` after a check: a number, "auto", or None.

    Raises:
        InputError: it is neither, or ``device`` was given too.
    """
    if asked is not None and device is not None:
        raise InputError(f"devices={asked!r} was asked for, with device={device!r}. Leave one of them out.")
    if asked is None or asked == AUTO:
        return asked
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= MOST:
        raise InputError(f'devices: expected a whole number from 1, "auto", or None for one; found {asked!r}.')
    return asked


def checked_replicas(asked: object) -> int | str | None:
    """Return the argument ``replicas`` after a check: a number, "auto", or None for a single model.

    Raises:
        InputError: it is none of these.
    """
    if asked is None or asked == AUTO:
        return AUTO if asked == AUTO else None
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= MOST:
        raise InputError(f'replicas: expected a whole number from 1, "auto", or None for one; found {asked!r}.')
    return None if asked == 1 else asked


def replica_count(asked: int | str, each: int, name: str, devices: Sequence[jax.Device]) -> int:
    """Return the number of replicas of a model, with ``each`` devices for every replica.

    Raises:
        DevicesError: there are not enough devices.
    """
    most = len(devices) // each
    if asked == AUTO:
        return most
    if int(asked) > most:
        raise DevicesError(
            f"replicas={asked} of {name!r} on {_of(each)} each need {int(asked) * each} devices, and this process has "
            f'{len(devices)}. What works here: replicas=1 to {most}, or "auto".',
            tuple(range(1, most + 1)),
        )
    return int(asked)


def weights_alone(plan: Planned) -> Fit:
    """Return the bytes of a model's weights on each device, and the memory of each by its own statistics."""
    has = plan.placement.memory_limit()
    return Fit(plan.placement.nbytes(plan.architecture.abstract(plan.recipe)), 2**63 if has is None else has)


def plan_for(
    asked: int | str,
    name: str,
    why_not: WhyNot,
    plan_at: Callable[[Placement], Plan],
    measure: Measure[Plan],
    devices: Sequence[jax.Device],
) -> tuple[Plan, str]:
    """Return the plan of a model on the requested number of devices, and the reason for that number.

    Raises:
        DevicesError: there are not enough devices, they are not of one kind, the model cannot be divided among them,
            or, for "auto", it fits on no number of them.
    """
    if asked != AUTO:
        place = _first(int(asked), name, why_not, devices)
        return plan_at(place), f"devices={asked}"
    tried: list[str] = []
    for count in _counts(why_not, devices):
        plan = plan_at(_first(count, name, why_not, devices))
        fit = measure(plan)
        if fit.needs <= fit.has:
            return plan, 'devices="auto"' + "".join(f", as {line}" for line in tried[-1:])
        tried.append(f"{_of(count)} would need {_gigabytes(fit.needs)} each, of {_gigabytes(fit.has)}")
    others = len(devices) - len(_alike(devices))
    left_out = (
        f" {others} of the {len(devices)} here are of another kind than the first, and left out." if others else ""
    )
    raise DevicesError(
        f'{name!r} fits on none of the numbers of devices that devices="auto" may choose from: {"; ".join(tried)}.'
        f'{left_out} Take a smaller model, or store its matrices in fewer bits: weights="int8" or "int4", or a GGUF '
        "file.",
        working=(),
    )


def beyond_its_share(where: Placement, tree: Any) -> str:
    """Describe the bytes that each device has beyond its share of the arrays, and why. Empty: there are none."""
    if (grid := where.grid) is None:
        return ""
    division, more = grid.division, dict[str, float]()
    for leaf in jax.tree.leaves(tree):
        for section in leaf.sections:
            ways, uncut = division.ways(section), division.ways(replace(section, block=1))
            if ways == division.devices:
                continue
            why = f"{section.count} {section.name} go {ways} way{'s' * (ways > 1)}"
            if ways < uncut:
                why = f"blocks of {section.block} numbers stay whole"
            nbytes = leaf.nbytes * section.stored / leaf.shape[leaf.along]
            more[why] = more.get(why, 0.0) + nbytes / ways - nbytes / division.devices
    listed = ", ".join(f"{_gigabytes(int(nbytes))} as {why}" for why, nbytes in more.items())
    return f"; beyond its share each has {listed}" if listed else ""


def encoders_on_each(where: Placement, nbytes: int) -> str:
    """Describe the encoders of pictures and sounds on each device. Empty for one device."""
    if where.one_device or not nbytes:
        return ""
    if not where.here:
        return "; its encoders do not run on several hosts"
    return f"; with the first picture or sound each gets its encoders whole, of {_gigabytes(nbytes)}"


def _first(count: int, name: str, why_not: WhyNot, devices: Sequence[jax.Device]) -> Placement:
    works = _counts(why_not, devices)
    possible = f"What works here: devices={_listed(works)}."
    if count > len(devices):
        kinds = Counter(device.device_kind for device in devices)
        found = " and ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none"
        raise DevicesError(f"devices={count} was asked for, and this process has {found}. {possible}", works)
    if (reason := why_not(count)) is not None:
        raise DevicesError(f"{name!r} cannot be divided among {count} devices: {reason}. {possible}", works)
    if count == 1:
        return SingleDevice(devices[0])
    some = tuple(devices[:count])
    if count > len(_alike(devices)):
        several = ", ".join(sorted({device.device_kind for device in some}))
        raise DevicesError(
            f"A model is divided among devices of one kind, and the first {count} here are {several}. {possible} "
            "For more, let the process see those of one kind only, with CUDA_VISIBLE_DEVICES for example.",
            works,
        )
    return DeviceMesh(some)


def _counts(why_not: WhyNot, devices: Sequence[jax.Device]) -> tuple[int, ...]:
    """Return the numbers of devices that work: the model can be divided among N, and the first N are of one kind."""
    return working_counts(why_not, len(_alike(devices)))


def _alike(devices: Sequence[jax.Device]) -> list[jax.Device]:
    """Return the devices before the first one of another kind."""
    return list(takewhile(lambda device: device.device_kind == devices[0].device_kind, devices))


def _listed(counts: Sequence[int]) -> str:
    *most, last = map(str, counts)
    return f"{', '.join(most)} or {last}" if most else last


def _of(count: int) -> str:
    return f"{count} device{'s' * (count > 1)}"


def _gigabytes(nbytes: int) -> str:
    return f"{nbytes / 1e9:,.1f} GB" if nbytes >= 1e8 else f"{nbytes / 1e6:,.1f} MB"
