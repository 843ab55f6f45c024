"""A model's placement on one device or several: where each of its arrays goes, and how much memory there is.

All code that puts arrays on devices, compiles programs for devices or counts their bytes goes through a ``Placement``.
``SingleDevice`` keeps every array whole on one device. A placement for several devices, such as ``mesh.DeviceMesh``,
divides an array by its ``ArraySpec``, and the cache by ``kv_cache.AXES``. Programs take and return arrays in that
layout; small arrays (tokens, knobs, scores) are whole on each device.
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
    """Several devices that divide arrays: the interface for traced code."""

    @property
    def division(self) -> Division:
        """The ``Division`` for this number of devices."""
        ...

    @property
    def here(self) -> bool:
        """True if this process has all of the devices."""
        ...

    @property
    def mesh(self) -> jax.sharding.Mesh:
        """The devices along their axes."""
        ...

    def names(self, ways: int) -> tuple[str, ...]:
        """Return the names of the mesh axes along which an array is divided that goes ``ways`` ways."""
        ...

    def partition(self, spec: ArraySpec) -> jax.sharding.PartitionSpec:
        """Return the partition of one of the model's arrays."""
        ...

    def partition_of_cache(self, shape: Sequence[int], axes: Axes) -> jax.sharding.PartitionSpec:
        """Return the partition of keys or values."""
        ...


class Placement(ABC):
    """The place of one model's arrays.

    Placements are hashable, and equal ones are the same place. Memory is counted and programs are shared by them.
    """

    @property
    @abstractmethod
    def devices(self) -> tuple[jax.Device, ...]:
        """The devices, in the order in which programs number them."""

    @property
    @abstractmethod
    def key(self) -> str:
        """The part of a compiled program's name that differs between places of the same kind of device."""

    @abstractmethod
    def sharding(self, shape: Sequence[int] = (), axes: Axes = ()) -> jax.sharding.Sharding:
        """Return the sharding of an array with this shape and these logical axes; no axes: whole on each device."""

    @abstractmethod
    def put(self, tree: Any, specs: Any = None) -> Any:
        """Copy numpy arrays there, divided by ``specs``, a tree of the same structure. None: whole on each device."""

    def parts(self, sections: tuple[Section, ...]) -> tuple[tuple[slice, ...], ...]:  # noqa: ARG002  they lie alike
        """Return the parts into which an array with these sections is divided: each part's pieces along the axis.

        Empty: the array is not divided, or ``put`` alone divides it.
        """
        return ()

    def put_parts(self, parts: Iterable[tuple[Any, ...]], make: Callable[..., Any], specs: Any) -> Any:
        """Copy an array's parts there, one after the other: a tree of numpy arrays for each part of ``specs``.

        ``make(*each)`` makes the tree of one entry of ``parts``. On several hosts, each makes only the parts of its own
        devices.
        """
        raise NotImplementedError(f"{type(self).__name__} divides nothing into parts")

    @property
    def platform(self) -> str:
        return str(self.devices[0].platform)

    @property
    def own(self) -> tuple[jax.Device, ...]:
        """The devices of this process. The others belong to other hosts."""
        return tuple(device for device in self.devices if device.process_index == device.client.process_index())

    @property
    def here(self) -> bool:
        """True if this process has all of the devices."""
        return len(self.own) == len(self.devices)

    @property
    def grid(self) -> DeviceGrid | None:
        """The grid of devices that divide arrays. None: there is one device, and every array is whole."""
        return None

    @property
    def one_device(self) -> bool:
        """True if every array lies whole on a single device."""
        return len(self.devices) == 1

    def sharding_of(self, spec: ArraySpec) -> jax.sharding.Sharding:
        """Return the sharding of one of the model's arrays."""
        return self.sharding(spec.stored_shape, spec.stored_axes)

    def shape_of(self, spec: ArraySpec) -> tuple[int, ...]:
        """Return the shape of one of the model's arrays in this placement."""
        return spec.stored_shape

    def nbytes(self, tree: Any) -> int:
        """Return the bytes that each device holds of a tree of arrays, or of ``ArraySpec``s of arrays to come."""
        if self.one_device:
            return total_bytes(tree)
        return sum(self._held(leaf) for leaf in jax.tree.leaves(tree))

    def _held(self, leaf: ArraySpec | jax.Array) -> int:
        if isinstance(leaf, ArraySpec):
            return _part_bytes(self.sharding_of(leaf), self.shape_of(leaf), numpy_dtype(leaf.dtype))
        return _part_bytes(leaf.sharding, leaf.shape, leaf.dtype)

    def memory_limit(self) -> int | None:
        """Return the memory of each device in bytes, by their own statistics. None: they keep none."""
        limits = [statistic(device, "bytes_limit") for device in self.own]
        return min((limit for limit in limits if limit is not None), default=None)

    def bytes_in_use(self) -> int:
        """Return the bytes in use on the fullest device, by this process or another.

        They come from the device's own statistics; where it keeps none, from JAX's list of live arrays.
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
    """Return the placement for an argument: a placement, a device, or None for JAX's first device."""
    if isinstance(where, Placement):
        return where
    return SingleDevice(jax.local_devices()[0] if where is None else where)


def statistic(device: jax.Device, name: str) -> int | None:
    """Return one of a device's memory statistics. None: the device keeps none of this name."""
    statistics = device.memory_stats()
    return int(statistics[name]) if statistics and name in statistics else None


def _bytes_on(device: jax.Device) -> int:
    if (used := statistic(device, "bytes_in_use")) is not None:
        return used
    default = device.default_memory().kind
    here = (array for array in jax.live_arrays() if array.sharding.memory_kind == default)
    return sum(
        _part_bytes(array.sharding, array.shape, array.dtype) for array in here if device in array.sharding.device_set
    )


def _part_bytes(where: jax.sharding.Sharding, shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """Return the bytes that one device holds of an array."""
    return prod(where.shard_shape(shape)) * dtype.itemsize
