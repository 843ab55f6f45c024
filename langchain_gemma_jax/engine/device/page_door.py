"""What is in pages, to the host and back: for conversations that leave the device, come back, or share a beginning.

On a CPU the pool is ordinary memory, and its pages are read and written there between two programs. Elsewhere programs
do it, some pages at a time.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.engine.device.device_access import DeviceAccess
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables
from langchain_gemma_jax.engine.device.programs import PAGES_AT_ONCE, Shape
from langchain_gemma_jax.models.configuration.model_config import CacheLayer
from langchain_gemma_jax.models.seams.kv_cache import LayerKV
from langchain_gemma_jax.models.seams.placement import Placement

Array = npt.NDArray[np.generic]
Content = tuple[Array, ...]
"""What is in a page: each layer's keys and values ``[kv_head, slot, head_dim]``; of global layers, then the ids."""

RunProgram = Callable[..., Any]


class PageDoor(Protocol):
    """The way to what is in pages. ``local`` says of which kind they are. For the owner thread."""

    def read(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> list[Content]:
        """Return copies of what is in pages."""
        ...

    def write(self, pool: KvPool, pages: Sequence[int], contents: Sequence[Content], *, local: bool) -> KvPool:
        """Return the pool with these contents in pages. The given one is not to be used any more."""
        ...

    def copy(self, pool: KvPool, source: int, target: int, *, local: bool) -> KvPool:
        """Return the pool with a page copied to another. The given one is not to be used any more."""
        ...

    def give_back(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> None:
        """Give the memory of unused pages back to the system, where that is possible."""
        ...


def page_door(shape: Shape, device: DeviceAccess, run: RunProgram) -> PageDoor:
    """Return the door for a placement. ``run(key, ...)`` runs one of the model's programs."""
    return MappedPages(shape) if is_mapped(device.placement) else ProgrammedPages(shape, device, run)


def is_mapped(where: Placement) -> bool:
    """Return True if a pool lies in the memory of this process."""
    return where.platform == "cpu" and where.one_device and where.here


def _layers_of(shape: Shape, *, local: bool) -> list[int]:
    layout = enumerate(shape.layout)
    return [index for index, layer in layout if layer is not None and (layer.window is not None) is local]


class MappedPages:
    """Pages in the memory of this process."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def read(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> list[Content]:
        arrays = self._arrays(pool, local=local)
        return [tuple(array[page].copy() for array in arrays) for page in pages]

    def write(self, pool: KvPool, pages: Sequence[int], contents: Sequence[Content], *, local: bool) -> KvPool:
        arrays = self._arrays(pool, local=local)
        for page, content in zip(pages, contents, strict=True):
            for array, part in zip(arrays, content, strict=True):
                array[page] = part
        return pool

    def copy(self, pool: KvPool, source: int, target: int, *, local: bool) -> KvPool:
        for array in self._arrays(pool, local=local):
            array[target] = array[source]
        return pool

    def give_back(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> None:
        for array in self._arrays(pool, local=local):
            for first, last in _runs(pages):
                _give_back(array[first : last + 1])

    def _arrays(self, pool: KvPool, *, local: bool) -> list[Array]:
        """Return the arrays of a kind of pages as they lie in memory, when no program uses them.

        JAX's own view of an array would keep the next program from writing in place.
        """
        jax.block_until_ready(pool)
        layers = [pool.layers[index] for index in _layers_of(self._shape, local=local)]
        found = [part for layer in layers if layer is not None for part in (layer.keys, layer.values)]
        return [_in_memory(each) for each in (*found, *(() if local else (pool.ids,)))]


def _in_memory(array: jax.Array) -> Array:
    data: Any = (ctypes.c_char * array.nbytes).from_address(array.unsafe_buffer_pointer())
    found: Array = np.frombuffer(data, array.dtype).reshape(array.shape)
    return found


def _give_back(array: Array) -> None:
    """Give the memory of an array back as far as it fills the system's own pages. It reads as zeros then."""
    if sys.platform == "linux":
        first = -(-array.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if first < last:
            libc = ctypes.CDLL(None)
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), mmap.MADV_DONTNEED)


def _runs(pages: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last page of each run of neighbors.

    >>> _runs([1, 2, 3, 7])
    [(1, 3), (7, 7)]
    """
    found: list[tuple[int, int]] = []
    for page in sorted(pages):
        if found and found[-1][1] == page - 1:
            found[-1] = found[-1][0], page
        else:
            found.append((page, page))
    return found


class ProgrammedPages:
    """Pages that programs read and write."""

    def __init__(self, shape: Shape, device: DeviceAccess, run: RunProgram) -> None:
        self._shape, self._device, self._run = shape, device, run

    def read(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> list[Content]:
        found: list[Content] = []
        for some in _parts(pages):
            taken: KvPool = self._run(("take_pages",), self._device.put(self._tables(some, local=local)), pool)
            arrays = jax.device_get(self._leaves(taken, local=local))  # asked for: a user's guard lets it pass
            found += [tuple(array[index] for array in arrays) for index in range(len(some))]
        return found

    def write(self, pool: KvPool, pages: Sequence[int], contents: Sequence[Content], *, local: bool) -> KvPool:
        for some, parts in zip(_parts(pages), _parts(contents), strict=True):
            new = self._device.put_pages(self._batch(parts, local=local))
            pool = self._run(("put_pages",), self._device.put(self._tables(some, local=local)), new, pool)
        return pool

    def copy(self, pool: KvPool, source: int, target: int, *, local: bool) -> KvPool:
        tables = (self._tables([page], local=local) for page in (source, target))
        copied: KvPool = self._run(("copy_pages",), *self._device.put(tuple(tables)), pool)
        return copied

    def give_back(self, pool: KvPool, pages: Sequence[int], *, local: bool) -> None:
        """Keep the memory: the pool has all of it from the beginning."""

    def _tables(self, pages: Sequence[int], *, local: bool) -> Tables:
        """Return the pages of one kind, and page 0, which is never given out, in all other places."""
        named, unused = (np.zeros(PAGES_AT_ONCE, np.int32) for _ in range(2))
        named[: len(pages)] = pages
        whole, own = (unused, named) if local else (named, unused)
        return Tables(whole, own)  # type: ignore[arg-type]  # they become arrays on the device

    def _leaves(self, pool: KvPool, *, local: bool) -> list[jax.Array]:
        layers = [pool.layers[index] for index in _layers_of(self._shape, local=local)]
        found = [part for layer in layers if layer is not None for part in (layer.keys, layer.values)]
        return [*found, *(() if local else (pool.ids,))]

    def _batch(self, contents: Sequence[Content], *, local: bool) -> KvPool:
        """Return contents as the pool of a few pages that ``put_pages`` takes; zeros for the other kind."""
        dtype, own = self._shape.recipe.kv_dtype, set(_layers_of(self._shape, local=local))
        columns, slots = iter(zip(*contents, strict=True)), self._shape.pages.slots

        def array(shape: tuple[int, ...], kind: Any, *, filled: bool) -> Array:
            batch = np.zeros((PAGES_AT_ONCE, *shape), kind)
            if filled:
                batch[: len(contents)] = np.stack(next(columns))
            return batch

        def of(layer: CacheLayer, *, filled: bool) -> LayerKV:
            shape, kind = (layer.kv_heads, slots, layer.width), jnp.dtype(layer.stored_dtype(dtype))
            parts = [array(shape, kind, filled=filled) for _ in range(2)]
            return LayerKV(*parts)  # type: ignore[arg-type]  # they become arrays on the device

        kinds = enumerate(self._shape.layout)
        layers = tuple(None if layer is None else of(layer, filled=index in own) for index, layer in kinds)
        return KvPool(layers, array((slots,), np.int32, filled=not local))  # type: ignore[arg-type]


def _parts(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[at : at + PAGES_AT_ONCE] for at in range(0, len(items), PAGES_AT_ONCE)]
