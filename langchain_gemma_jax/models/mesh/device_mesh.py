"""A placement on several devices of one kind: each array is divided into parts, and each part put on its device.

Every matrix is divided by its ``ArraySpec.sections``. Where one array has several sections (queries, keys and values;
gate and up), each device's part has its share of each, one after the other. So a product with a part gives the device's
own heads, and no activation has to move. If a section goes fewer ways than another, its parts are repeated in the
array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Axes
from langchain_gemma_jax.models.configuration.division import Division, Section
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.weights import map_specs

Partition: TypeAlias = jax.sharding.PartitionSpec

WHOLE = jax.sharding.PartitionSpec()
_LARGE = 1 << 20  # bytes of an array from which on the host waits for each part before it makes the next


@dataclass(frozen=True, repr=False)
class DeviceMesh(Placement):
    """Several devices, which share each matrix and work together."""

    members: tuple[jax.Device, ...]

    @property
    def devices(self) -> tuple[jax.Device, ...]:
        return self.members

    @property
    def grid(self) -> DeviceMesh:
        return self

    @cached_property
    def own(self) -> tuple[jax.Device, ...]:
        return super().own

    @cached_property
    def here(self) -> bool:
        return super().here

    @cached_property
    def division(self) -> Division:
        """The ``Division`` for this number of devices."""
        return Division(len(self.members))

    @cached_property
    def mesh(self) -> jax.sharding.Mesh:
        """The devices along their axes."""
        axes = self.division.axes
        devices = np.array(self.members, dtype=object).reshape(axes)
        kinds = (jax.sharding.AxisType.Auto,) * len(axes)
        return jax.sharding.Mesh(devices, self.names(len(self.members)), axis_types=kinds)

    @cached_property
    def key(self) -> str:
        """The mesh axes, and each device with its coordinates, if it has any, and its host.

        A compiled program is valid only for equal keys.
        """
        where = (f"{each.id}@{getattr(each, 'coords', '')}{_host_of(each)}" for each in self.members)
        return f"mesh {'x'.join(map(str, self.division.axes))}: {', '.join(where)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key})"

    def names(self, ways: int) -> tuple[str, ...]:
        """Return the names of the mesh axes along which an array is divided that goes ``ways`` ways."""
        return tuple(f"part{number}" for number in range(self.division.along(ways)))

    def sharding(self, shape: Sequence[int] = (), axes: Axes = ()) -> jax.sharding.NamedSharding:
        return jax.sharding.NamedSharding(self.mesh, self.partition_of_cache(shape, axes))

    def partition_of_cache(self, shape: Sequence[int], axes: Axes) -> Partition:
        """Return the partition of keys or values: along their heads, into as many parts as these divide."""
        if "kv_heads" not in axes:
            return WHOLE
        at = axes.index("kv_heads")
        return self._along(at, self.division.ways(Section("key-value heads", shape[at])))

    def sharding_of(self, spec: ArraySpec) -> jax.sharding.NamedSharding:
        return jax.sharding.NamedSharding(self.mesh, self.partition(spec))

    def partition(self, spec: ArraySpec) -> Partition:
        """Return the partition of one of the model's arrays."""
        return self._along(spec.stored_along, self.division.ways_of(spec.sections))

    def shape_of(self, spec: ArraySpec) -> tuple[int, ...]:
        shape = list(spec.stored_shape)
        if spec.sections:
            shape[spec.stored_along] = self.division.part(spec.sections) * self.division.ways_of(spec.sections)
        return tuple(shape)

    def put(self, tree: Any, specs: Any = None) -> Any:
        """Copy numpy arrays there: to each device only its part of an array, one part after the other."""
        if specs is None:
            return jax.device_put(tree, self.sharding()) if self.here else jax.tree.map(self._put_whole, tree)
        return jax.tree.map(self._put, tree, map_specs(_Leaf, specs))

    def parts(self, sections: tuple[Section, ...]) -> tuple[tuple[slice, ...], ...]:
        ways = self.division.ways_of(sections)
        if ways == 1:
            return ()
        block = sections[0].block
        numbers = [self.division.cuts(sections, number) for number in range(ways)]
        return tuple(tuple(slice(cut.start * block, cut.stop * block) for cut in cuts) for cuts in numbers)

    def put_parts(self, parts: Iterable[tuple[Any, ...]], make: Callable[..., Any], specs: Any) -> Any:
        leaves, tree = jax.tree.flatten(map_specs(_Leaf, specs))
        ways = max(self.division.ways_of(leaf.spec.sections) for leaf in leaves)
        each = len(self.members) // ways  # devices with the same part are next to each other
        arrays_of: list[list[jax.Array]] = [[] for _ in leaves]
        left, own = list(self.members), set(self.own)
        for given in parts:
            there, left = own.intersection(left[:each]), left[each:]
            if not there:
                continue
            part = make(*given)
            for arrays, array in zip(arrays_of, jax.tree.leaves(part), strict=True):
                arrays += [jax.device_put(array, device) for device in there]
            jax.block_until_ready([arrays[-len(there) :] for arrays in arrays_of])
            del part, array  # before the next one is made
        whole = [
            jax.make_array_from_single_device_arrays(self.shape_of(leaf.spec), self.sharding_of(leaf.spec), arrays)
            for leaf, arrays in zip(leaves, arrays_of, strict=True)
        ]
        return jax.tree.unflatten(tree, whole)

    def _put(self, array: npt.NDArray[np.generic], leaf: _Leaf) -> jax.Array:
        spec, division = leaf.spec, self.division
        shape, where = self.shape_of(spec), self.sharding_of(spec)
        done = jax.block_until_ready if array.nbytes >= _LARGE else _as_it_is
        if division.ways_of(spec.sections) == 1:
            return done(jax.device_put(array, where) if self.here else self._put_whole(array))
        axis, length = spec.stored_along, division.part(spec.sections)
        parts, number, part, own = [], -1, None, set(self.own)
        for device, index in where.devices_indices_map(shape).items():
            if device not in own:
                continue
            wanted = (index[axis].start or 0) // length
            if wanted != number:  # devices with the same part are next to each other
                part = None  # before the next one is made
                number, part = wanted, _joined(array, axis, division.cuts(spec.sections, wanted))
            parts.append(done(jax.device_put(part, device)))
        return jax.make_array_from_single_device_arrays(shape, where, parts)

    def _put_whole(self, array: npt.NDArray[np.generic]) -> jax.Array:
        """Copy an array to the devices of this process. Other hosts do the same with theirs."""
        copies = jax.device_put([array] * len(self.own), list(self.own))
        return jax.make_array_from_single_device_arrays(array.shape, self.sharding(), copies)

    def _along(self, axis: int, ways: int) -> Partition:
        return WHOLE if ways == 1 else jax.sharding.PartitionSpec(*[None] * axis, self.names(ways))


def _host_of(device: jax.Device) -> str:
    """Return the host of a device as text; empty for the first one."""
    return f" of host {device.process_index}" if device.process_index else ""


def _as_it_is(array: jax.Array) -> jax.Array:
    return array


@dataclass(frozen=True)
class _Leaf:
    """The spec of one array, as a leaf of a tree."""

    spec: ArraySpec


def _joined(array: npt.NDArray[np.generic], axis: int, cuts: Sequence[slice]) -> npt.NDArray[np.generic]:
    """Join pieces of an array along an axis. A single piece is not copied."""
    before = (slice(None),) * axis
    pieces = [array[(*before, piece)] for piece in cuts]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)
