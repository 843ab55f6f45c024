"""The signatures of programs: the shapes of their arguments and results.

With them a program can be compiled, or fetched from disk, before there are weights or a conversation to call it with.
``ladders.Ladders`` has all keys, and ``programs.py`` the program of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from langchain_gemma_jax.engine.base.program_key import ENCODING, ProgramKey
from langchain_gemma_jax.engine.device import sequence_kv
from langchain_gemma_jax.engine.device.knobs import knobs
from langchain_gemma_jax.engine.device.programs import MAX_STOPS, Programs, RowKnobs, Shape
from langchain_gemma_jax.engine.device.sampling import Picked
from langchain_gemma_jax.engine.device.sequence_kv import RingArrays, SequenceKV
from langchain_gemma_jax.models.configuration.abstract import ArraySpec
from langchain_gemma_jax.models.seams import kv_cache
from langchain_gemma_jax.models.seams.kv_cache import AXES, LayerKV
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

    def arguments(self, key: ProgramKey) -> tuple[Any, ...]:
        """Return a program's arguments: trees of ``ShapeDtypeStruct``."""
        kind, *rest = key
        sizes = tuple(int(size) for size in rest)
        if kind in {*ENCODING, "read_medium"}:
            return self._of_media(str(kind), *sizes)
        match kind:
            case "empty":
                return ()
            case "resize" | "snapshot":
                return (self.sequence(sizes[0]),)
            case "restore":
                return self.sequence(sizes[1]), self._rings(sizes[0])
            case "read" | "verify":
                return self.params, self._ints(1, sizes[0]), self._ints(1), self._ints(1), self.sequence(sizes[1])
            case "embed":
                return self.params, self._ints(*sizes), self._ints(sizes[0])
            case "pick":
                (rows,) = sizes
                hidden = self._spec((rows, self._shape.architecture.width), "float32")
                ids = self._ints(sequence_kv.physical(self._shape.max_context))
                return self.params, hidden, self._ints(rows), (ids,) * rows, (self._row(),) * rows
            case "step":
                rows, capacity = sizes
                each, sequences = self._ints(rows), (self.sequence(capacity),) * rows
                if self._shape.loop_steps > 1:
                    stops = self._ints(rows, MAX_STOPS)
                    return self.params, each, each, each, stops, sequences, (self._row(),) * rows
                alone = ((self._row(),),) if rows == 1 else ()
                return self.params, each, each, sequences, *alone
        raise ValueError(f"expected a program's key, found {key!r}")

    def result(self, key: ProgramKey) -> Any:
        """Return a tree with the structure of a program's result. Its leaves have no meaning."""
        kind, *rest = key
        sizes = tuple(int(size) for size in rest)
        match kind:
            case "empty" | "resize":
                return self.sequence(sizes[-1])
            case "snapshot":
                return self._rings(None)
            case "restore":
                return self.sequence(sizes[1])
            case "read" | "verify" | "read_medium":
                return 0, 0, self.sequence(sizes[-1])
            case "encode_begin" | "encode_layer":
                return self._state(*sizes)
            case "encode_end":
                return 0
            case "pick":
                return self._picked()
            case "embed":
                return 0
            case "step":
                rows, capacity = sizes
                first = self._picked() if rows == 1 or self._shape.loop_steps > 1 else 0
                return first, 0, (self.sequence(capacity),) * rows
        raise ValueError(f"expected a program's key, found {key!r}")

    def sequence(self, capacity: int) -> SequenceKV:
        """Return the shapes of a conversation of this capacity."""
        ids = self._ints(sequence_kv.physical(self._shape.max_context))
        return SequenceKV(self._cache(sequence_kv.physical(capacity)), ids)

    def _of_media(self, kind: str, encoder: int, *sizes: int) -> tuple[Any, ...]:
        if kind in ENCODING:
            return self._encoding(kind, encoder, *sizes)
        chunk, capacity = sizes
        vectors, one = self._spec((1, chunk, self._shape.architecture.width), "float32"), self._ints(1)
        return self.params, self._ints(1, chunk), vectors, one, one, self.sequence(capacity)

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

    def _cache(self, slots: int) -> tuple[LayerKV | None, ...]:
        layout, dtype = self._shape.layout, self._shape.recipe.kv_dtype
        specs = (
            None if spec is None else self._spec(spec.shape, spec.dtype, self._placement.sharding(spec.shape, AXES))
            for spec in kv_cache.abstract_cache(layout, 1, slots, dtype)
        )
        return tuple(None if spec is None else LayerKV(spec, spec) for spec in specs)

    def _rings(self, size: int | None) -> RingArrays:
        """Return the shapes of the local layers' rings with this number of slots."""
        cache = self._cache(size or self._shape.max_context)
        return tuple(
            layer for index in sequence_kv.local_layers(self._shape.layout) if (layer := cache[index]) is not None
        )

    def _picked(self) -> Picked:
        return Picked(*(self._ints(),) * 4)

    def _row(self) -> RowKnobs:
        plain = knobs(seed=0, prompt_length=0)
        words = -(-self._shape.architecture.vocab_size // 32)
        return RowKnobs(
            jax.tree.map(lambda array: self._spec(array.shape, array.dtype), plain), self._spec((words,), "uint32")
        )

    def _ints(self, *shape: int) -> Any:
        return self._spec(shape, "int32")

    def _spec(self, shape: tuple[int, ...], dtype: Any, where: jax.sharding.Sharding | None = None) -> Any:
        """Return the shape of an array, which is replicated on each device unless a sharding is given."""
        return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype), sharding=where or self._whole)


def lower(programs: Programs, signatures: Signatures, key: ProgramKey) -> jax.stages.Lowered:
    """Trace and lower a program, ready to be compiled."""
    return programs.of(key).lower(*signatures.arguments(key))
