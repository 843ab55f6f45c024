"""Google's mobile releases: numbers of 2, 4 and 8 bits with one scale per output, and grids.

There are two spellings of one model. This is that of ``-qat-mobile-transformers``.

A matrix called ``x.weight`` is stored as bytes, with ``x.weight_scale`` and the step sizes of two grids,
``x.input_activation_scale`` and ``x.output_activation_scale``. A token table is ``x.embedding_quantized`` with
``x.embedding_scale``. A matrix' number of bits follows from the number of bytes in a row. The configuration has it too,
in regular expressions over module names. These are not used: they can say nothing else, and an untrusted regular
expression can run forever.

``-qat-mobile-ct`` is in the format of compressed-tensors: a matrix or table is ``x.weight_packed``, whole words of its
numbers with the first one in the lowest bits, with ``x.weight_scale`` and ``x.weight_shape``; with eight bits it may be
``x.weight`` instead. Its grids are ``x.input_scale`` and ``x.output_scale``.

The scales of a quantized cache (``k_cache_scale``, ``v_cache_scale``) are not read, as the published code does not
read them either: keys and values are not quantized.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from langchain_gemma_jax.errors import InputError, TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.folder import CONFIG
from langchain_gemma_jax.models.checkpoint.hf_names import HEADS, hf_naming
from langchain_gemma_jax.models.checkpoint.safetensors import SafetensorsSource, open_safetensors
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract, walk
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.packed.blocks import Stacked
from langchain_gemma_jax.models.packed.by_path import ByPath
from langchain_gemma_jax.models.packed.channel_matrix import ChannelMatrix
from langchain_gemma_jax.models.seams.block_forms import BlockForm, BlockForms
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.tensor_source import Array, Naming, Part, TensorSource
from langchain_gemma_jax.models.seams.weights import is_matrix

STORED_TYPES = {2: "2 bits an output's scale", 4: "4 bits an output's scale", 8: "8 bits an output's scale"}
_STORED_AS: Mapping[str, tuple[str, frozenset[str]]] = {  # numbers, to their scales and dtypes
    "weight": ("weight_scale", frozenset({"U8", "I8"})),
    "embedding_quantized": ("embedding_scale", frozenset({"U8", "I8"})),
    "weight_packed": ("weight_scale", frozenset({"I32"})),
}
_SHAPE = "weight_shape"
_GRIDS = (("input_activation_scale", "output_activation_scale"), ("input_scale", "output_scale"))
_OF_A_CACHE = ("k_cache_scale", "v_cache_scale")
_FLOATS = ("float32", "bfloat16", "float16")
_LOOKED_UP = {("embed",), ("ple_embed",)}  # of which rows are taken


@dataclass(frozen=True)
class Channels:
    """The storage of a matrix, or of a run of its outputs: number of outputs, bits, and scales per output."""

    outputs: int
    bits: int
    groups: int  # scales per output


def open_mobile(folder: FilePath, raw: Mapping[str, Any]) -> MobileCheckpoint:
    """Open the model in such a folder. The caller closes it.

    ``raw`` is its configuration, without the entry on quantization.

    Raises:
        UnsupportedModelError: it has experts, which these releases do not have.
        CheckpointError, ConfigError: the files cannot be used.
    """
    shown = folder / CONFIG
    stored = open_safetensors(folder)
    try:
        source = MobileSource(stored)
        config = _without_experts(config_from_hf(_with_head(raw, source.names()), str(shown)), shown)
        naming = hf_naming(config, source.names(), source.location)
        source.expect({part.name: part.shape for path, _ in walk(abstract(config)) for part in naming(config, path)})
        return MobileCheckpoint(config, source, naming)
    except BaseException:
        stored.close()
        raise


def _without_experts(config: ModelConfig, shown: FilePath) -> ModelConfig:
    if config.moe is not None:
        raise UnsupportedModelError(f"{shown}: experts are in no release of this kind. Use a GGUF file.")
    return config


def _with_head(raw: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the configuration, with the head tied to the embedding only if there is no separate output matrix.

    The two are trained as one, but stored separately: looked-up rows are not on a grid.
    """
    tied = {"tie_word_embeddings": not any(head in names for head in HEADS)}
    config = {**raw, **tied}
    if isinstance(text := raw.get("text_config"), dict):
        config["text_config"] = {**text, **tied}
    return config


class MobileSource(TensorSource):
    """The tensors of such a folder. Packed matrices have the names of the dense checkpoint."""

    shared = True

    def __init__(self, stored: SafetensorsSource) -> None:
        self.location, self._stored = stored.location, stored
        names = set(stored.names())
        self._packed: dict[str, tuple[str, str]] = {}  # dense name → the stored names of numbers and scales
        for name in names:
            base, _, last = name.rpartition(".")
            scales, dtypes = _STORED_AS.get(last, ("", frozenset()))
            if stored.dtype(name) in dtypes:
                self._packed[f"{base}.weight"] = (name, f"{base}.{scales}")
        companions = (_SHAPE, *(grid for grids in _GRIDS for grid in grids))
        own = {f"{name.rpartition('.')[0]}.{each}" for name in self._packed for each in companions}
        own |= {name for pair in self._packed.values() for name in pair}
        own |= {name for name in names if name.rpartition(".")[2] in _OF_A_CACHE}
        self._names = (names - own) | set(self._packed)
        self._expected: Mapping[str, tuple[int, ...]] = {}

    def expect(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Set the dense shapes of the tensors to come: the stored shapes alone do not tell two bits from four."""
        self._expected = shapes

    def names(self) -> Collection[str]:
        return self._names

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self._packed:
            return self._stored.shape(name)
        return self._expected[name] if self.channels(name) else self._stored.shape(self._packed[name][0])

    def dtype(self, name: str) -> str:
        if name not in self._packed:
            return self._stored.dtype(name)
        storage = self.channels(name)
        return STORED_TYPES[storage.bits] if storage else self._stored.dtype(self._packed[name][0])

    def channels(self, name: str) -> Channels | None:
        """Return the storage of a matrix. None: it is dense, or its bytes do not fit the expected shape.

        Raises:
            TensorMismatchError: its scales are missing or do not fit.
        """
        if name not in self._packed or len(expected := self._expected.get(name, ())) != 2:
            return None
        (numbers, scales), (outputs, inputs) = self._packed[name], expected
        shape, dtype = self._stored.shape(numbers), self._stored.dtype(numbers)
        room = 32 if dtype == "I32" else 8  # bits of each stored number
        bits = next(
            (bits for bits in STORED_TYPES if shape == (outputs, inputs * bits // room) and inputs * bits % room == 0),
            None,
        )
        if bits is None or (dtype != "I32" and (bits == 8) != (dtype == "I8")):
            return None
        if dtype == "I32":
            self._check_shape(name, expected)
        groups = self._groups(scales, outputs)
        if inputs % groups:
            raise TensorMismatchError(self.location, f"{scales!r} to divide {inputs} numbers", f"{groups} scales a row")
        return Channels(outputs, bits, groups)

    def _check_shape(self, name: str, expected: tuple[int, ...]) -> None:
        """See that the shape beside a matrix of words is the one that they have."""
        shape = f"{name.rpartition('.')[0]}.{_SHAPE}"
        there = shape in self._stored.names() and math.prod(self._stored.shape(shape)) == len(expected)
        stored = b"".join(part.tobytes() for part in self._stored.read_raw(shape)) if there else b""
        if stored != np.array(expected, np.int64 if len(stored) == 16 else np.int32).tobytes():
            raise TensorMismatchError(self.location, f"{shape!r} to say {list(expected)}", "something else, or nothing")

    def _groups(self, name: str, outputs: int) -> int:
        expected = f"{name!r} with {outputs} rows of scales in {', '.join(_FLOATS)}"
        if name not in self._stored.names():
            raise TensorMismatchError(self.location, expected, "no tensor of that name")
        shape, dtype = self._stored.shape(name), self._stored.dtype(name)
        if dtype not in _FLOATS or shape not in {(outputs,), (outputs, *shape[1:2])} or not all(shape):
            raise TensorMismatchError(self.location, expected, f"{dtype} {list(shape)}")
        return shape[1] if len(shape) == 2 else 1

    def grids(self, name: str) -> tuple[str | None, ...]:
        """Return the names of the tensors with the step sizes of a matrix' two grids; None where it has no such grid.

        Raises:
            TensorMismatchError: one of these tensors is not one number.
        """
        base, names, grids = name.rpartition(".")[0], self._stored.names(), []
        for spellings in zip(*_GRIDS, strict=True):
            full = next((full for grid in spellings if (full := f"{base}.{grid}") in names), f"{base}.{spellings[0]}")
            known = full in names
            if known and (math.prod(self._stored.shape(full)) != 1 or self._stored.dtype(full) not in _FLOATS):
                shown = f"{self._stored.dtype(full)} {list(self._stored.shape(full))}"
                raise TensorMismatchError(self.location, f"{full!r} to be one number", shown)
            grids.append(full if known else None)
        return tuple(grids)

    def read(self, name: str) -> Array:
        return self._stored.read(name)

    def read_into(self, name: str, target: Array) -> bool:
        return self._stored.read_into(name, target)

    def read_rows(self, name: str) -> Iterator[Array]:
        return self._stored.read_rows(name)

    def read_channels(self, name: str, into: ChannelMatrix) -> None:
        """Fill the arrays of a matrix."""
        numbers, scales = self._packed[name]
        into.scales[...] = self._stored.read(scales).reshape(into.scales.shape)
        room, row = into.numbers.view(np.uint8), 0
        in_words = self._stored.dtype(numbers) == "I32"
        for piece in self._stored.read_raw(numbers):
            read: Array = piece.view(np.uint8).reshape(len(piece), -1) if in_words else piece
            # In words, eight bits are counted from the least number on too.
            room[row : row + len(piece)] = np.bitwise_xor(read, 128) if in_words and into.bits == 8 else read
            row += len(piece)
        for grid, target in zip(self.grids(name), (into.grid_in, into.grid_out), strict=True):
            target[...] = 0 if grid is None else self._stored.read(grid).reshape(())

    def close(self) -> None:
        self._stored.close()


@dataclass(frozen=True)
class PerChannel(ByPath[Channels]):
    """Storage of each matrix in the form of such a folder."""

    @property
    def stored_types(self) -> Collection[str]:
        return tuple(STORED_TYPES.values())

    def specs(self, how: Channels, dense: ArraySpec) -> tuple[ChannelMatrix, int]:
        bits, outputs, inputs = how.bits, how.outputs, dense.shape[-1]
        made = ChannelMatrix(
            ArraySpec((outputs, inputs * bits // 8), "int8" if bits == 8 else "uint8", axes=dense.axes),
            ArraySpec((outputs, how.groups), "float32", axes=(*dense.axes[:1], "block")),
            ArraySpec((), "float32"),
            ArraySpec((), "float32"),
            bits,
            dense.dtype,
            self.forms.more_rows is BlockForm.TILES,
        )
        return made, outputs

    def read(
        self,
        stored: Any,
        source: TensorSource,
        parts: Sequence[Part],
        empty: Callable[[ArraySpec], Array],
    ) -> Any:
        if not isinstance(source, MobileSource):
            raise TypeError(f"expected a mobile release's tensors, found {type(source).__name__}")
        matrices = []
        for part, specs in zip(parts, stored.weights if isinstance(stored, Stacked) else (stored,), strict=True):
            numbers, scales, *grids = map(empty, (specs.numbers, specs.scales, specs.grid_in, specs.grid_out))
            made = ChannelMatrix(numbers, scales, grids[0], grids[1], specs.bits, specs.dtype, specs.tiled)
            source.read_channels(part.name, made)
            matrices.append(made)
        return matrices[0] if len(matrices) == 1 else Stacked(tuple(matrices), stored.outputs)


def per_channel(source: MobileSource, naming: Naming, config: ModelConfig, dtype: str, forms: BlockForms) -> PerChannel:
    """Return the storage of a model in such a folder.

    Raises:
        TensorMismatchError: only some outputs of a matrix are packed, or an output has several scales.
    """
    stored = []
    for path, spec in walk(abstract(config, dtype)):
        if not is_matrix(spec):
            continue
        parts = naming(config, path)
        known = [source.channels(part.name) for part in parts]
        packed = tuple(each for each in known if each is not None)
        if not packed:
            continue
        names = ", ".join(part.name for part in parts)
        if len(packed) < len(parts):
            raise TensorMismatchError(source.location, f"{names} to be packed alike", "one that is not packed")
        is_multiplied = path not in _LOOKED_UP or (path == ("embed",) and config.tied_head)
        if is_multiplied and any(each.groups > 1 for each in packed):
            raise TensorMismatchError(source.location, f"{names} with one scale an output", "several")
        for part in parts:
            source.grids(part.name)
        stored.append((path, packed))
    return PerChannel(tuple(stored), forms)


class MobileCheckpoint(Checkpoint[MobileSource]):
    """A model in such a folder."""

    @property
    def packed(self) -> bool:
        return True

    @property
    def tables_packed(self) -> bool:
        return True

    def storage(self, dtype: str, forms: BlockForms) -> PerChannel:
        return per_channel(self.tensors, self.naming, self.config, dtype, forms)

    def check_asked(self, activations: str | None, *, divided: bool) -> None:
        if divided:
            raise UnsupportedModelError(
                f"{self.tensors.location}: a mobile release has grids for sums that devices would have parts of. It is "
                "made for one device: leave devices out."
            )
        if activations is not None:
            raise InputError(
                f"{self.tensors.location}: its activations are on grids that are a part of the model. Leave them out."
            )
