"""The signatures of programs: the shapes of their arguments and results.

With them a program can be compiled, or fetched from disk, before there are weights or a conversation to call it with.
``ladders.Ladders`` has all keys, and ``programs.py`` the program of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.program_key import ENCODING, MOVING, PUT_ADAPTER, ProgramKey, without_adapters
from langchain_gemma_jax.engine.device import page_pool
from langchain_gemma_jax.engine.device.knobs import NUMBERS
from langchain_gemma_jax.engine.device.page_pool import KvPool, Tables
from langchain_gemma_jax.engine.device.programs import MAX_STOPS, PAGES_AT_ONCE, Programs, RowSettings, Shape
from langchain_gemma_jax.engine.device.sampling import Picked
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.seams.adapters import AdaptedParams, Stacks, stack_shapes
from langchain_gemma_jax.models.seams.kv_cache import PageCounts
from langchain_gemma_jax.models.seams.media_encoder import Tensor
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.weights import map_specs


class Signatures:
    """The signatures of one model's programs for one placement."""

    def __init__(self, shape: Shape, placement: Placement) -> None:
        self._shape, self._placement = shape, placement
        self._whole = placement.sharding()

        def of(spec: ArraySpec) -> Any:
            return self._spec(placement.shape_of(spec), spec.dtype, placement.sharding_of(spec))

        self.params: Any = map_specs(of, shape.architecture.abstract(shape.recipe))
        self.drafter: Any = None if shape.drafter is None else map_specs(of, shape.drafter.abstract())

    def arguments(self, key: ProgramKey) -> tuple[Any, ...]:
        """Return a program's arguments: trees of ``ShapeDtypeStruct``."""
        plain, stacked = without_adapters(key)
        if plain[0] == PUT_ADAPTER:
            return self._put_adapter(*(int(size) for size in plain[1:]))
        if stacked is None:
            return self._arguments(plain)
        params, *others = self._arguments(plain)
        rows = int(plain[1]) if plain[0] == "step" else 1
        return AdaptedParams(params, self.stacks(*stacked), self._ints(rows)), *others

    def _arguments(self, key: ProgramKey) -> tuple[Any, ...]:
        kind, *rest = key
        sizes = tuple(int(size) for size in rest)
        if kind in {*ENCODING, "read_medium"}:
            return self._of_media(str(kind), *sizes)
        if kind in MOVING:
            return (self._some_pages(), *self._moved(str(kind)), self.pool)
        match kind:
            case "empty":
                return ()
            case "read":
                chunk, capacity = sizes
                one = self._ints(1)
                return self.params, self._ints(1, chunk), one, one, self._ints(), self._tables(1, capacity), self.pool
            case "draft":
                _, capacity = sizes
                one, hidden = self._ints(1), self._spec((self._shape.picks, self._shape.architecture.width), "float32")
                start = (one, one, hidden, self._ints())
                return self.params, self.drafter, *start, self._tables(1, capacity), self.pool
            case "embed":
                return self.params, self._ints(*sizes), self._ints(sizes[0])
            case "pick":
                (rows,) = sizes
                hidden = self._spec((rows, self._shape.architecture.width), "float32")
                whole = self._tables(rows, self._shape.max_context).whole
                return self.params, hidden, self._ints(rows), self._ints(), whole, self.pool.ids, self._rows(rows)
            case "step":
                rows, capacity = sizes
                each, tables = self._ints(rows), self._tables(rows, capacity)
                if self._shape.loop_steps > 1:
                    return (
                        self.params,
                        each,
                        each,
                        each,
                        self._ints(rows, MAX_STOPS),
                        tables,
                        self.pool,
                        self._rows(rows),
                    )
                settings = (self._rows(rows),) if rows == 1 else ()
                return self.params, each, each, each, tables, self.pool, *settings
        raise ValueError(f"expected a program's key, found {key!r}")

    def result(self, key: ProgramKey) -> Any:
        """Return a tree with the structure of a program's result. Its leaves have no meaning."""
        kind, *rest = without_adapters(key)[0]
        sizes = tuple(int(size) for size in rest)
        match kind:
            case "empty" | "copy_pages" | "put_pages":
                return self.pool
            case _ if kind == PUT_ADAPTER:
                return self.stacks(*sizes)
            case "take_pages":
                return self._contents()
            case "read" | "read_medium":
                return 0, 0, self.pool
            case "encode_begin" | "encode_layer":
                return self._state(*sizes)
            case "encode_end":
                return 0
            case "pick":
                return self._picked()
            case "embed" | "draft":
                return 0
            case "step":
                rows, _ = sizes
                first = self._picked() if rows == 1 or self._shape.loop_steps > 1 else 0
                return first, 0, self.pool
        raise ValueError(f"expected a program's key, found {key!r}")

    def _put_adapter(self, slots: int, rank: int) -> tuple[Any, ...]:
        stacks = self.stacks(slots, rank)
        one = jax.tree.map(lambda all_of: self._spec(all_of.shape[1:], all_of.dtype), stacks)
        return stacks, self._ints(), one

    def stacks(self, slots: int, rank: int) -> Stacks:
        """Return the shapes of the adapters' stacks.

        Raises:
            TypeError: the architecture takes no adapters.
        """
        if (layers := self._shape.architecture.adapted_layers) is None:
            raise TypeError(f"{type(self._shape.architecture).__name__} takes no adapters")
        return [
            {name: jax.tree.map(self._floats, stack, is_leaf=_is_shape) for name, stack in layer.items()}
            for layer in stack_shapes(layers, slots, rank)
        ]

    def _floats(self, shape: tuple[int, ...]) -> Any:
        return self._spec(shape, "float32")

    @cached_property
    def pool(self) -> KvPool:
        """The shapes of the pool of pages."""
        return self._pool_of(self._shape.pages)

    def _pool_of(self, counts: PageCounts) -> KvPool:
        abstract = page_pool.abstract_pool(self._shape.layout, counts, self._shape.recipe.kv_dtype)
        homes = page_pool.shardings(self._placement, abstract)
        specs: KvPool = jax.tree.map(lambda spec, home: self._spec(spec.shape, spec.dtype, home), abstract, homes)
        return specs

    def _moved(self, kind: str) -> tuple[Any, ...]:
        return {"copy_pages": (self._some_pages(),), "take_pages": (), "put_pages": (self._contents(),)}[kind]

    def _contents(self) -> KvPool:
        return self._pool_of(PageCounts(PAGES_AT_ONCE, PAGES_AT_ONCE, self._shape.pages.slots))

    def _some_pages(self) -> Tables:
        return Tables(self._ints(PAGES_AT_ONCE), self._ints(PAGES_AT_ONCE))

    def _tables(self, rows: int, capacity: int) -> Tables:
        return Tables(self._ints(rows, self._shape.paging.count(capacity)), self._ints(rows, self._shape.local_entries))

    def _of_media(self, kind: str, encoder: int, *sizes: int) -> tuple[Any, ...]:
        if kind in ENCODING:
            return self._encoding(kind, encoder, *sizes)
        chunk, capacity = sizes
        vectors, one = self._spec((1, chunk, self._shape.architecture.width), "float32"), self._ints(1)
        return self.params, self._ints(1, chunk), vectors, one, one, self._tables(1, capacity), self.pool

    def _encoding(self, part: str, encoder: int, size: int) -> tuple[Any, ...]:
        """Return the arguments of one part of an encoder: its arrays, and its input or state."""
        kind = self._shape.architecture.encoders[encoder]
        tree = kind.tensors()
        begin, layer, end = tree.begin, tree.layers[0] if tree.layers else {}, tree.end
        if part == "encode_begin":
            inputs = {name: self._spec(given.shape, given.dtype) for name, given in kind.inputs(size).items()}
            return self._encoder_arrays(begin), inputs
        return self._encoder_arrays(layer if part == "encode_layer" else end), self._state(encoder, size)

    def _encoder_arrays(self, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        dtype = self._shape.recipe.dtype
        return {key: self._spec(tensor.shape, tensor.dtype(dtype)) for key, tensor in tensors.items()}

    def _state(self, encoder: int, size: int) -> Any:
        """Return the shapes of the state that an encoder's parts pass on."""
        arguments = self._encoding("encode_begin", encoder, size)
        state = jax.eval_shape(self._shape.architecture.encoders[encoder].begin, *arguments)
        return jax.tree.map(lambda leaf: self._spec(leaf.shape, leaf.dtype), state)

    def _picked(self) -> Picked:
        return Picked(*(self._ints(),) * 4)

    def _rows(self, count: int) -> RowSettings:
        words = self._spec((-(-self._shape.architecture.vocab_size // 32),), "uint32")
        return RowSettings(self._spec((count, NUMBERS), "uint32"), (words,) * count)

    def _ints(self, *shape: int) -> Any:
        return self._spec(shape, "int32")

    def _spec(self, shape: tuple[int, ...], dtype: Any, where: jax.sharding.Sharding | None = None) -> Any:
        """Return the shape of an array, which is replicated on each device unless a sharding is given."""
        return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=where or self._whole)


def _is_shape(node: object) -> bool:
    return isinstance(node, tuple) and bool(node) and all(isinstance(size, int) for size in node)


def lower(programs: Programs, signatures: Signatures, key: ProgramKey) -> jax.stages.Lowered:
    """Trace and lower a program, ready to be compiled."""
    lowered = programs.of(key).lower(*signatures.arguments(key))
    if programs.placement.platform == "cpu":
        _strip(lowered)
    return lowered


def _strip(lowered: jax.stages.Lowered) -> None:
    """Leave out the places in the source that each operation comes from.

    On CPUs a loaded program keeps its operations twice, with a text and a place each: half of its memory, and a third
    of its file. On other devices a profile names operations by them.
    """
    from jaxlib.mlir.passmanager import PassManager

    module: Any = lowered.compiler_ir("stablehlo")
    with module.context:
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
