"""A model's place, on one device or several: where each of its arrays goes, and what memory there is.

Everything that puts arrays somewhere, compiles programs for somewhere or counts the bytes of somewhere asks a
``Placement``. ``SingleDevice`` is the one for a single device, and has every array whole. One for several devices,
such as ``mesh.DeviceMesh``, divides an array by what its ``ArraySpec`` says of it, and the cache by ``kv_cache.AXES``.
Programs take and give arrays as the placement has them, and small
things (tokens, knobs, scores) are whole on each device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import jax
import numpy as np

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Axes, numpy_dtype
from langchain_gemma_jax.models.configuration.division import Division, Section
from langchain_gemma_jax.models.seams.weights import total_bytes


class DeviceGrid(Protocol):
    """Several devices that divide arrays: all that code which is traced for them asks."""

    @property
    def division(self) -> Division:
        """The number of devices, and the ways in which it divides."""
        ...

    @property
    def here(self) -> bool:
        """Return True if this process has all of the devices."""
        ...

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The devices along their axes."""
        ...

    def names(self, ways: int) -> tuple[str, ...]:
        """Return the names of the axes along which an array is divided that goes N ways."""
        ...

    def partition(self, spec: ArraySpec) -> jax.sharding.PartitionSpec:
        """Return how an array of a model is divided."""
        ...

    def partition_of_cache(self, shape: Sequence[int], axes: Axes) -> jax.sharding.PartitionSpec:
        """Return how keys or values are divided."""
        ...


class Placement(ABC):
    """Where the arrays of one model lie.

    Placements are hashable, and equal ones are the same place: memory is counted, and programs are shared, by that.
    """

    @property
    @abstractmethod
    def devices(self) -> tuple[jax.Device, ...]:
        """The devices, in the order in which programs number them."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What distinguishes compiled programs for it from those for other places of the same kind of device."""

    @abstractmethod
    def sharding(self, shape: Sequence[int] = (), axes: Axes = ()) -> jax.sharding.Sharding:
        """Where an array of this shape, with these logical axes, lies. Without axes: whole, on each device."""

    @abstractmethod
    def put(self, tree: Any, specs: Any = None) -> Any:
        """Copy numpy arrays there: as ``specs``, a tree of the same structure, says; else whole, on each device."""

    def parts(self, sections: tuple[Section, ...]) -> tuple[tuple[slice, ...], ...]:  # noqa: ARG002  they lie alike
        """The parts into which an array with these sections goes: where the pieces of each lie along the axis.

        None: it is not divided, or by ``put`` alone.
        """
        return ()

    def put_parts(self, parts: Iterable[tuple[Any, ...]], make: Callable[..., Any], specs: Any) -> Any:
        """Copy what ``parts`` said there, one after the other: a tree of numpy arrays for each part of ``specs``.

        ``make`` makes each from what is in ``parts`` for it. Of several hosts, each makes those of its own devices.
        """
        raise NotImplementedError(f"{type(self).__name__} divides nothing into parts")

    @property
    def platform(self) -> str:
        return str(self.devices[0].platform)

    @property
    def own(self) -> tuple[jax.Device, ...]:
        """The devices that this process has. Others belong to other hosts, which it works together with."""
        return tuple(device for device in self.devices if device.process_index == device.client.process_index())

    @property
    def here(self) -> bool:
        """Whether this process has all of the devices."""
        return len(self.own) == len(self.devices)

    @property
    def grid(self) -> DeviceGrid | None:
        """How its devices divide arrays among themselves. None: there is one device, and every array is whole."""
        return None

    @property
    def one_device(self) -> bool:
        """Whether every array lies whole on a single device."""
        return len(self.devices) == 1

    def sharding_of(self, spec: ArraySpec) -> jax.sharding.Sharding:
        """Where an array of a model lies."""
        return self.sharding(spec.stored_shape, spec.stored_axes)

    def shape_of(self, spec: ArraySpec) -> tuple[int, ...]:
        """The shape of an array of a model there."""
        return spec.stored_shape

    def nbytes(self, tree: Any) -> int:
        """The bytes that each of the devices holds of a tree of arrays, or of ``ArraySpec``s of what will be arrays."""
        if self.one_device:
            return total_bytes(tree)
        return sum(self._held(leaf) for leaf in jax.tree.leaves(tree))

    def _held(self, leaf: ArraySpec | jax.Array) -> int:
        if isinstance(leaf, ArraySpec):
            return _part_bytes(self.sharding_of(leaf), self.shape_of(leaf), numpy_dtype(leaf.dtype))
        return _part_bytes(leaf.sharding, leaf.shape, leaf.dtype)

    def memory_limit(self) -> int | None:
        """The bytes that each of the devices has, by their own statistics. None: they keep none."""
        found = [statistic(device, "bytes_limit") for device in self.own]
        return min((limit for limit in found if limit is not None), default=None)

    def bytes_in_use(self) -> int:
        """The bytes that are used, by whoever, on the device that is fullest.

        By the device's own statistics, or by JAX's list of arrays where it keeps none.
        """
        return max(_bytes_on(device) for device in self.own)


@dataclass(frozen=True)
class SingleDevice(Placement):
    """One device, with every array whole on it."""

    device: jax.Device

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        return (self.device,)

    @property
    def key(self) -> str:
        return str(self.device.id)

    def sharding(self, shape: Sequence[int] = (), axes: Axes = ()) -> jax.sharding.Sharding:  # noqa: ARG002  all lie alike
        return jax.sharding.SingleDeviceSharding(self.device)

    def put(self, tree: Any, specs: Any = None) -> Any:  # noqa: ARG002  all lie alike
        return jax.device_put(tree, self.device)


def placement_of(where: jax.Device | Placement | None) -> Placement:
    """The placement that a caller named: by itself, by a device, or not at all. Then it is JAX's first device."""
    if isinstance(where, Placement):
        return where
    return SingleDevice(jax.local_devices()[0] if where is None else where)


def statistic(device: jax.Device, name: str) -> int | None:
    """One of a device's statistics of its memory. None: it keeps none of this name."""
    found = device.memory_stats()
    return int(found[name]) if found and name in found else None


def _bytes_on(device: jax.Device) -> int:
    if (used := statistic(device, "bytes_in_use")) is not None:
        return used
    default = device.default_memory().kind
    here = (array for array in jax.live_arrays() if array.sharding.memory_kind == default)
    return sum(
        _part_bytes(array.sharding, array.shape, array.dtype) for array in here if device in array.sharding.device_set
    )


def _part_bytes(where: jax.sharding.Sharding, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The bytes of what one device holds of an array."""
    return prod(where.shard_shape(shape)) * dtype.itemsize
