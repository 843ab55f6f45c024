"""Stored tensors to arrays on the device: a few at a time, in their final dtype and layout.

Every name, shape and dtype is checked before the first byte is read. Then each array is assembled
in one buffer on the host, moved to the device, and dropped here. So the host never holds much more
than the two largest arrays (on CPU, where the host is the device: than the weights themselves). Where devices divide an
array, each device's part is assembled separately, if the format lets parts be read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from typing import Any, NamedTuple

import jax
import numpy as np

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.configuration.abstract import (
    ITEM_BYTES,
    ArraySpec,
    Layout,
    Path,
    Tree,
    abstract,
    numpy_dtype,
    walk,
)
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.mapped.array_file import ArrayFile
from langchain_gemma_jax.models.seams.params import Params, assemble
from langchain_gemma_jax.models.seams.placement import Placement, placement_of
from langchain_gemma_jax.models.seams.tensor_source import (
    Array,
    Naming,
    Part,
    TensorSource,
    as_stored,
    cut_parts,
    joint_sections,
    narrowed,
)
from langchain_gemma_jax.models.seams.weights import DENSE, Storage, map_specs, stored_as, total_bytes

_ALIGNMENT = 64  # JAX on CPU takes over a buffer with this alignment, and copies any other
_SMALL = 64 << 10  # bytes up to which arrays are moved together
_LARGE = 4 << 20  # bytes from which numpy asks the system for large pages
READERS = 2  # threads that fill buffers: one does not keep up with memory, and more would slow other work
_CHUNK_BYTES = 8 << 20  # converted at a time
_TURNED_ROWS = 128  # transposed at a time, in a buffer that stays in the cache: measured, up to 6 times as fast
_UNQUANTIZED = "Quantized checkpoints are not supported: take the unquantized one of this model."
_PADDING = 64  # bytes after each row of that buffer: in rows of 2^n bytes, the numbers of a column share a cache set


class _Planned(NamedTuple):
    path: Path
    spec: ArraySpec  # of the array that is assembled here
    stored: Any  # its stored form: the same spec, or the specs of the arrays that it is packed into
    parts: list[Part]

    @property
    def stays(self) -> bool:
        """True if the assembled array is stored as it is."""
        return self.stored is self.spec


def place(
    source: TensorSource,
    naming: Naming,
    config: ModelConfig,
    dtype: str,
    layout: Layout,
    where: Placement | jax.Device,
    progress: Callable[[int], object] | None = None,
    storage: Storage = DENSE,
    mapped: ArrayFile | None = None,
) -> Params:
    """Load the parameter tree of ``abstract(config, dtype, layout)`` to the device or devices, stored by ``storage``.

    Norm scales hold the factor itself: the stored w becomes ``config.norm_offset + w``, summed in float32.
    ``progress`` is called with the bytes of each array once it is on the device. ``mapped`` is a file in which each
    array has its place: they are filled there, instead of in memory of this process.

    Raises:
        TensorMismatchError: a tensor is missing or is not of the shape and dtype that the configuration
            requires, or a value is too large for float16. Nothing stays on the device.
    """
    placement = placement_of(where)
    from_file = storage.as_in_file
    plan = _plan(source, naming, config, abstract(config, dtype, layout), storage)
    kept = [planned for planned in plan if planned.stays or from_file]
    on_host = placement.platform == "cpu" and placement.one_device
    in_parts = _Parts(source, placement)
    shared = on_host and mapped is None  # of the small arrays, that is
    memory = _Memory([leaf.nbytes for each in kept for leaf in jax.tree.leaves(each.stored)] if shared else [])
    empty_for = _empty_for(memory, mapped)

    def fill(planned: _Planned, source: TensorSource = source) -> Any:
        path, spec, stored, parts = planned
        if from_file and not planned.stays:
            return storage.read(stored, source, parts, empty_for(path))
        room = empty_for(path)(spec) if planned.stays else _empty(spec)
        filled = _fill(source, spec, parts, config.norm_offset if _is_norm(path) else 0.0, room)
        return filled if planned.stays else _kept(mapped, path, stored, storage.pack(path, spec, filled))

    def filled_or_parts(planned: _Planned) -> Any:
        if total_bytes(planned.stored) > _SMALL and (parts := in_parts.of(planned)) is not None:
            return parts
        return fill(planned)

    # An array that is packed here is dense until then, and only one of these is in memory at a time. The same holds for
    # arrays that go to several devices: such models may have arrays of which the host cannot hold two.
    as_read = from_file or all(planned.stays for planned in plan)
    several = source.shared and as_read and placement.one_device
    advance = progress or (lambda _nbytes: None)
    placed: dict[Path, Any] = {}
    small: dict[Path, Any] = {}
    specs = {planned.path: planned.stored for planned in plan}
    try:
        with closing(_filled(plan, filled_or_parts, READERS if several else 1)) as filled:
            for path, buffers in filled:
                nbytes = total_bytes(specs[path])
                if nbytes <= _SMALL:
                    small[path] = buffers
                    continue
                if isinstance(buffers, _InParts):
                    placed[path] = placement.put_parts(buffers.parts, fill, specs[path])
                else:
                    placed[path] = placement.put(buffers, specs[path])
                del buffers  # on CPU the array may be this buffer and keeps it; elsewhere it goes once it is copied
                jax.block_until_ready(placed[path])
                advance(nbytes)
        # Moving an array takes at least a fifth of a millisecond, and most arrays are small: they are moved together.
        moved = placement.put(list(small.values()), [specs[path] for path in small])
        placed |= zip(small, jax.block_until_ready(moved), strict=True)
        advance(total_bytes([specs[path] for path in small]))
    except BaseException:  # a KeyboardInterrupt too: the arrays placed so far would leak
        for array in jax.tree.leaves(placed):
            array.delete()
        raise
    return assemble([(planned.path, placed[planned.path]) for planned in plan])


def _empty_for(memory: _Memory, mapped: ArrayFile | None) -> Callable[[Path], Callable[[ArraySpec], Array]]:
    """Return a function that returns, for a path, a function that allocates its arrays."""
    return (lambda _path: memory.empty) if mapped is None else mapped.empty


def _kept(mapped: ArrayFile | None, path: Path, stored: Any, packed: Any) -> Any:
    """Return arrays that were packed here: in their places in the file, if there is one."""
    return packed if mapped is None else mapped.copy(path, stored, packed)


def place_mapped(mapped: ArrayFile, specs: Sequence[tuple[Path, Any]], where: Placement) -> Params:
    """Return the parameter tree of a filled file, whose arrays the device takes over without a copy."""
    arrays = where.put([mapped.arrays(path, spec) for path, spec in specs], [spec for _, spec in specs])
    return assemble([(path, array) for (path, _), array in zip(specs, arrays, strict=True)])


def _plan(source: TensorSource, naming: Naming, config: ModelConfig, tree: Tree, storage: Storage) -> list[_Planned]:
    """Return the plan of every array, after a check that the tensors that make it up are there."""
    plan = []
    for path, spec in walk(tree):
        stored = stored_as(storage, path, spec)
        kinds = storage.stored_types if stored is not spec else ()
        plan.append(_Planned(path, spec, stored, _checked_parts(source, naming, config, path, kinds)))
    return plan


class _InParts(NamedTuple):
    parts: list[tuple[_Planned, TensorSource]]  # each is filled separately


class _Parts:
    """Plans to read arrays part by part, for devices that divide them."""

    def __init__(self, source: TensorSource, placement: Placement) -> None:
        self._source, self._placement = source, placement

    def of(self, planned: _Planned) -> _InParts | None:
        """Return the parts of an array. None: it is whole on each device, or its tensors can only be read whole."""
        path, spec, stored, parts = planned
        planned_parts = []
        for pieces in self._placement.parts(joint_sections(spec, jax.tree.leaves(stored))):
            cut = cut_parts(spec, parts, pieces)
            source = None if cut is None else self._source.cut(cut[1])
            if cut is None or source is None:
                return None
            dense = narrowed(spec, sum(piece.stop - piece.start for piece in pieces))
            of_part = dense if planned.stays else map_specs(self._narrowed, stored)
            planned_parts.append((_Planned(path, dense, of_part, cut[0]), source))
        return _InParts(planned_parts) if planned_parts else None

    def _narrowed(self, leaf: ArraySpec) -> ArraySpec:
        parts = self._placement.parts(leaf.sections)  # runs of outputs can go different ways
        if not parts:
            return leaf
        return narrowed(leaf, sum(piece.stop - piece.start for piece in parts[0]) // leaf.sections[0].block)


def _filled(plan: Sequence[_Planned], fill: Callable[[_Planned], Any], readers: int) -> Generator[tuple[Path, Any]]:
    """Yield the buffers of all arrays, each as soon as it is full. At most one per reader is being filled."""
    if readers == 1:
        yield from ((planned.path, fill(planned)) for planned in plan)
        return
    running: dict[Future[Any], Path] = {}
    with ThreadPoolExecutor(readers, "load") as threads:
        for planned in plan:
            if planned.spec.nbytes <= _SMALL:  # passing it to a thread would take longer
                yield planned.path, fill(planned)
                continue
            if len(running) == readers:
                yield from _finished(running)
            running[threads.submit(fill, planned)] = planned.path
        while running:
            yield from _finished(running)


def _finished(running: dict[Future[Any], Path]) -> Iterator[tuple[Path, Any]]:
    done, _ = wait(running, return_when=FIRST_COMPLETED)
    while done:
        yield _taken(done, running)


def _taken(done: set[Future[Any]], running: dict[Future[Any], Path]) -> tuple[Path, Any]:
    """Return a path and its buffers, without keeping a reference to them."""
    each = done.pop()
    return running.pop(each), each.result()


def default_dtype(source: TensorSource, naming: Naming, config: ModelConfig) -> str:
    """Return the default dtype of a checkpoint's matrices: that of its embedding, but float32 for float16.

    Products are taken in the matrices' dtype, and Gemma's activations pass 65,504, the end of float16: they
    would become infinite. bfloat16 would hold them, but not the weights, which it rounds from 11 bits to 8.
    """
    stored = source.dtype(_checked_parts(source, naming, config, ("embed",))[0].name)
    return "float32" if stored == "float16" else stored


def _is_norm(path: Path) -> bool:
    return str(path[-1]).endswith("norm")


def _checked_parts(
    source: TensorSource, naming: Naming, config: ModelConfig, path: Path, packed: Collection[str] = ()
) -> list[Part]:
    """Return an array's parts, after a check that each is present, with the right shape and a dtype or packed type."""
    parts = naming(config, path)
    for part in parts:
        if part.name not in source.names():
            raise TensorMismatchError(
                source.location, f"a tensor {part.name!r} of shape {list(part.shape)}", "no tensor of that name"
            )
        if (shape := source.shape(part.name)) != part.shape:
            raise TensorMismatchError(
                source.location,
                f"{part.name!r} of shape {list(part.shape)}, as the configuration has it",
                f"the shape {list(shape)}",
            )
        if (dtype := source.dtype(part.name)) not in ITEM_BYTES and dtype not in packed:
            known = [*ITEM_BYTES, *(kind for kind in packed if kind.lower().startswith("q"))]
            advice = "Take a file of this model in one of these." if packed else _UNQUANTIZED
            raise TensorMismatchError(source.location, f"{part.name!r} in {', '.join(known)}", dtype, advice)
    return parts


def _fill(source: TensorSource, spec: ArraySpec, parts: Sequence[Part], offset: float, buffer: Array) -> Array:
    """Fill the buffer with the array in its final dtype and layout, and return it."""
    logical = buffer.swapaxes(-1, -2) if spec.transposed else buffer
    if not (_lies_as_stored(source, spec, parts) and _read_into(source, parts, logical)):
        _fill_in_blocks(source, spec, parts, logical)
    if offset:
        np.add(buffer, offset, out=buffer)
    return buffer


def _read_into(source: TensorSource, parts: Sequence[Part], target: Array) -> bool:
    """Read the parts to their places in ``target``. Return False if this source cannot."""
    row = 0
    for part in parts:
        if not source.read_into(part.name, target[row : row + part.shape[0]]):
            return False
        row += part.shape[0]
    return True


def _fill_in_blocks(source: TensorSource, spec: ArraySpec, parts: Sequence[Part], logical: Array) -> None:
    # The rows of a matrix are along its last axis but one. Experts are read one after the other, along the first axis.
    whole = len(parts) == 1 and parts[0].arrange is as_stored and parts[0].shape == spec.shape
    axis = 0 if whole else -2
    at = 0
    for part, block in _blocks(source, parts, whole=whole):
        target = logical
        if block.ndim > 1:
            where = slice(at, at + block.shape[axis])
            target = logical[where] if whole else logical[..., where, :]
            at = where.stop
        if block.shape != target.shape:
            raise TensorMismatchError(
                source.location, f"{part.name!r} to fill {list(target.shape)}", f"{list(block.shape)}"
            )
        try:
            _copy(block, target, turned=spec.transposed)
        except FloatingPointError:
            raise TensorMismatchError(
                source.location,
                f"{part.name!r} to have values that float16 can hold",
                "larger ones",
                'Load the model with dtype="bfloat16" or dtype="float32".',
            ) from None
        del block
    if len(spec.shape) > 1 and at != (rows := spec.shape[axis]):
        names = ", ".join(part.name for part in parts)
        raise TensorMismatchError(source.location, f"{names} to fill {rows} rows", f"{at} rows")


def _lies_as_stored(source: TensorSource, spec: ArraySpec, parts: Sequence[Part]) -> bool:
    """Return True if the bytes of the stored parts, end to end, are the array's bytes."""
    if len(spec.shape) < 2 or spec.transposed or sum(part.shape[0] for part in parts) != spec.shape[0]:
        return False
    return all(
        part.arrange is as_stored
        and not part.by_rows
        and part.shape[1:] == spec.shape[1:]
        and source.dtype(part.name) == spec.dtype
        for part in parts
    )


def _blocks(source: TensorSource, parts: Sequence[Part], *, whole: bool) -> Iterator[tuple[Part, Array]]:
    """Yield the arranged blocks of the parts, in order. ``whole``: the only part is the array itself, with all axes."""
    for part in parts:
        if part.by_rows or (part.arrange is as_stored and (len(part.shape) == 2 or (whole and len(part.shape) > 2))):
            for rows in source.read_rows(part.name):
                yield part, part.arrange(rows)
        else:
            yield part, part.arrange(source.read(part.name))


class _Memory:
    """Host memory for arrays. The small ones share one piece, which stays as long as any of them does.

    The system backs large pieces with pages of 2 MB, and small ones with pages of 4 KB, each of which costs a fault at
    its first use and an entry in the processor's tables after that.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """Allocate the shared piece. ``sizes``: bytes of each array that will stay in host memory."""
        self._left = _aligned(sum(_with_padding(size) for size in sizes if size < _LARGE))
        self._lock = threading.Lock()  # all readers allocate here

    def empty(self, spec: ArraySpec) -> Array:
        """Return a buffer for an array that will stay in host memory."""
        size = _with_padding(spec.nbytes)
        with self._lock:
            if spec.nbytes >= _LARGE or size > self._left.nbytes:
                return _empty(spec)
            room, self._left = self._left[:size], self._left[size:]
        return _as(spec, room)


def _empty(spec: ArraySpec) -> Array:
    """Return a buffer for one array, which JAX on CPU takes over without a copy."""
    return _as(spec, _aligned(_with_padding(spec.nbytes)))


def _as(spec: ArraySpec, room: Array) -> Array:
    return room[: spec.nbytes].view(numpy_dtype(spec.dtype)).reshape(spec.stored_shape)


def _with_padding(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _aligned(size: int) -> Array:
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + size]


def _copy(block: Array, target: Array, *, turned: bool) -> None:
    """Copy and convert, rounding to nearest even; NaN and infinities are kept.

    It goes in slices along the first axis, so that no temporary grows large. ``turned``: the columns of ``target``,
    not its rows, are contiguous.
    """
    if block.ndim == 3:
        for one, room in zip(block, target, strict=True):
            _copy(one, room, turned=turned)
        return
    if block.ndim < 2:
        _convert(block, target)
        return
    row_bytes = max(1, block.shape[1] * block.dtype.itemsize)
    step = _TURNED_ROWS if turned else max(1, _CHUNK_BYTES // row_bytes)
    room = _room_to_turn(target) if turned else None
    for start in range(0, block.shape[0], step):
        rows, out = block[start : start + step], target[start : start + step]
        if room is None:
            _convert(rows, out)
        else:
            _convert(rows, room[: len(rows)])
            out[...] = room[: len(rows)]


def _room_to_turn(target: Array) -> Array:
    """Return a buffer for a few rows, converted but not yet transposed."""
    columns = target.shape[1]
    room = np.empty((_TURNED_ROWS, columns + _PADDING // target.itemsize), target.dtype)
    return room[:, :columns]


def _convert(block: Array, target: Array) -> None:
    to_float16 = target.dtype == np.float16 and block.dtype != np.float16
    if to_float16:
        block = block.astype(np.float32)  # numpy reports no overflow when it converts from bfloat16
    with np.errstate(over="raise" if to_float16 else "ignore", invalid="ignore"):
        target[...] = block
