"""Quantized Hugging Face folders in the format of compressed-tensors: Google's ``-qat-w4a16-ct`` releases.

Of the format that is read here: integers of four bits in groups of 32 with one scale, symmetric around zero, eight of
them in an int32 (``pack-quantized``). ``mobile.py`` reads ``-qat-mobile-ct``: integers of 2, 4 or 8 bits with one scale
per output, and inputs and outputs on grids. Everything else is refused by its name.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from langchain_gemma_jax.errors import TensorMismatchError, UnsupportedModelError
from langchain_gemma_jax.models.checkpoint.folder import CONFIG
from langchain_gemma_jax.models.checkpoint.hf_names import hf_naming
from langchain_gemma_jax.models.checkpoint.safetensors import SafetensorsSource, open_safetensors
from langchain_gemma_jax.models.configuration.hf_config import config_from_hf
from langchain_gemma_jax.models.configuration.strict_json import short
from langchain_gemma_jax.models.packed.from_file import BlockCheckpoint, BlockSource
from langchain_gemma_jax.models.seams.tensor_source import Array, Cut, CutTensors, TensorSource

GROUP, BITS, IN_ONE = 32, 4, 8
_PACKED, _SCALE, _SHAPE = "weight_packed", "weight_scale", "weight_shape"
_PLAIN = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
_WEIGHTS: Mapping[str, tuple[object, ...]] = {
    "num_bits": (BITS,),
    "type": ("int",),
    "symmetric": (True,),
    "strategy": ("group",),
    "group_size": (GROUP,),
    "dynamic": (False, None),
    "actorder": (None,),
    "block_structure": (None,),
}


def open_compressed(folder: Path, raw: Mapping[str, Any], quantization: Mapping[str, object]) -> BlockCheckpoint:
    """Open the model in such a folder. The caller closes it.

    ``raw`` is its configuration, and ``quantization`` that configuration's entry on quantization.

    Raises:
        UnsupportedModelError: it is quantized in another way.
        CheckpointError, ConfigError: the files cannot be used.
    """
    shown = folder / CONFIG
    _check(shown, quantization)
    config = config_from_hf(raw, str(shown))
    stored = open_safetensors(folder)
    try:
        source = CompressedSource(stored)
        return BlockCheckpoint(config, source, hf_naming(config, source.names(), source.location))
    except BaseException:
        stored.close()
        raise


_FORMATS = ("mixed-precision", "pack-quantized", "int-quantized")
_CHANNELS: Mapping[str, tuple[object, ...]] = {
    "num_bits": (2, 4, 8),
    "type": ("int",),
    "symmetric": (True,),
    "strategy": ("channel", "group"),
    "dynamic": (False, None),
    "actorder": (None,),
    "block_structure": (None,),
}
_GRID: Mapping[str, tuple[object, ...]] = {
    "num_bits": (8,),
    "type": ("int",),
    "symmetric": (True,),
    "strategy": ("tensor",),
    "dynamic": (False, None),
}


def has_channels(quantization: Mapping[str, object]) -> bool:
    """Return True if some weights have one scale per output, as in ``-qat-mobile-ct``."""
    groups = quantization.get("config_groups")
    weights = [group.get("weights") for group in groups.values() if isinstance(group, dict)] if _some(groups) else []
    return any(isinstance(each, dict) and each.get("strategy") == "channel" for each in weights)


def check_channels(shown: Path, quantization: Mapping[str, object]) -> None:
    """Refuse every kind of quantization but that of ``-qat-mobile-ct``.

    Raises:
        UnsupportedModelError: it is quantized in another way.
    """
    if (layout := quantization.get("format")) not in _FORMATS:
        expected = " or ".join(_FORMATS)
        raise UnsupportedModelError(
            f"{shown}: expected compressed-tensors in the format {expected}, found {short(layout)}."
        )
    groups = quantization.get("config_groups")
    for name, group in groups.items() if isinstance(groups, dict) else ():
        known = {"weights": _CHANNELS, "input_activations": _GRID, "output_activations": _GRID}
        for part, fields in known.items():
            found = group.get(part) if isinstance(group, dict) else None
            if found is None and part != "weights":
                continue
            if not isinstance(found, dict):
                raise UnsupportedModelError(
                    f"{shown}: expected {short(name)} to quantize weights, found {short(found)}."
                )
            _check_fields(shown, f"the {part} of {short(name)}", found, fields)


def _some(groups: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(groups, dict) and bool(groups)


def _check_fields(
    shown: Path, where: str, quantization: Mapping[str, object], fields: Mapping[str, tuple[object, ...]]
) -> None:
    for key, known in fields.items():
        if not any(type(found := quantization.get(key)) is type(each) and found == each for each in known):
            expected = " or ".join(map(repr, known))
            raise UnsupportedModelError(
                f"{shown}: expected {key} {expected} in {where}, found {short(quantization.get(key))}."
            )


def _check(shown: Path, quantization: Mapping[str, object]) -> None:
    """Refuse every kind of quantization but the one that is read here."""
    if (layout := quantization.get("format")) != "pack-quantized":
        raise UnsupportedModelError(
            f"{shown}: expected compressed-tensors in the format pack-quantized, found the format {short(layout)}. "
            "Use the unquantized checkpoint, or a GGUF file."
        )
    groups = quantization.get("config_groups")
    if not _some(groups) or quantization.get("kv_cache_scheme") is not None:
        raise UnsupportedModelError(f"{shown}: expected config_groups, and no kv_cache_scheme, of compressed-tensors.")
    for name, group in groups.items():
        weights = group.get("weights") if isinstance(group, dict) else None
        if not isinstance(weights, dict) or group.get("input_activations") or group.get("output_activations"):
            raise UnsupportedModelError(f"{shown}: expected {short(name)} to quantize weights and nothing else.")
        _check_fields(shown, short(name), weights, _WEIGHTS)


class CompressedSource(BlockSource):
    """The tensors of such a folder. Packed matrices have the names of the dense checkpoint."""

    shared = True

    def __init__(self, stored: SafetensorsSource) -> None:
        self.location, self._stored = stored.location, stored
        names = stored.names()
        self._shapes: dict[str, tuple[int, ...]] = {}
        for name in names:
            if name.endswith(f".{_PACKED}"):
                self._shapes[_sibling(name, "weight")] = self._checked(_sibling(name, "weight"))
        own = {f"{name.removesuffix('weight')}{part}" for name in self._shapes for part in (_PACKED, _SCALE, _SHAPE)}
        self._names = (set(names) - own) | set(self._shapes)

    def names(self) -> Collection[str]:
        return self._names

    def shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name] if name in self._shapes else self._stored.shape(name)

    def dtype(self, name: str) -> str:
        return self.block_format(name) if name in self._shapes else self._stored.dtype(name)

    def block_format(self, name: str) -> str:
        if name in self._shapes:
            return "INT4" if self._stored.dtype(_sibling(name, _SCALE)) == "bfloat16" else "Q4_0"
        dtype = self._stored.dtype(name)
        return _PLAIN.get(dtype, dtype)

    def read(self, name: str) -> Array:
        return self._stored.read(name)

    def read_into(self, name: str, target: Array) -> bool:
        return self._stored.read_into(name, target)

    def read_rows(self, name: str) -> Iterator[Array]:
        return self._stored.read_rows(name)

    def read_blocks(self, name: str) -> Iterator[Array]:
        if name not in self._shapes:
            return _of_numbers(self._stored.read_rows(name))
        return _blocks(self._stored.read_raw(_sibling(name, _PACKED)), self._stored.read(_sibling(name, _SCALE)))

    def cut(self, cuts: Mapping[str, Cut]) -> TensorSource:
        return _CutCompressed(self, self._stored, cuts, frozenset(self._shapes))

    def close(self) -> None:
        self._stored.close()

    def _checked(self, name: str) -> tuple[int, ...]:
        """Return the shape of a packed matrix, after a check of the shapes and dtypes of its tensors."""
        packed, scale, shape = (_sibling(name, part) for part in (_PACKED, _SCALE, _SHAPE))
        for needed in (scale, shape):
            if needed not in self._stored.names():
                raise TensorMismatchError(self.location, f"a tensor {needed!r}", "no tensor of that name")
        if self._stored.dtype(packed) != "I32" or len(self._stored.shape(packed)) != 2:
            found = f"{self._stored.dtype(packed)} {list(self._stored.shape(packed))}"
            raise TensorMismatchError(self.location, f"{packed!r} as a matrix of I32", found)
        outputs, words = self._stored.shape(packed)
        inputs = words * IN_ONE
        size = self._stored.shape(shape)
        stored = b"".join(rows.tobytes() for rows in self._stored.read_raw(shape)) if math.prod(size) == 2 else b""
        if stored != np.array([outputs, inputs], np.int64 if len(stored) == 16 else np.int32).tobytes():
            raise TensorMismatchError(self.location, f"{shape!r} to say {[outputs, inputs]}", "something else")
        wanted, found_scale = (outputs, inputs // GROUP), self._stored.shape(scale)
        if inputs % GROUP or found_scale != wanted or self._stored.dtype(scale) not in {"bfloat16", "float16"}:
            expected = f"{scale!r} of shape {list(wanted)} in bfloat16 or float16, a scale for {GROUP} inputs"
            raise TensorMismatchError(self.location, expected, f"{self._stored.dtype(scale)} {list(found_scale)}")
        return (outputs, inputs)


class _CutCompressed(CutTensors, BlockSource):
    """Parts of such tensors. A part of a packed matrix is cut at groups, and has its own words and scales."""

    def __init__(
        self, source: CompressedSource, stored: SafetensorsSource, cuts: Mapping[str, Cut], packed: frozenset[str]
    ) -> None:
        super().__init__(source, cuts)
        self._source = source
        self._packed = {name for name, cut in cuts.items() if cut.name in packed}
        parts: dict[str, Cut] = {}
        for name, cut in cuts.items():
            if name not in self._packed:
                parts[name] = cut
                continue
            for part, together in ((_PACKED, IN_ONE), (_SCALE, GROUP)):
                inputs = together if cut.axis == 1 else 1
                own = Cut(_sibling(cut.name, part), cut.axis, cut.begin // inputs, cut.end // inputs)
                parts[f"{name} {part}"] = own
        self._parts = CutTensors(stored, parts)

    def block_format(self, name: str) -> str:
        return self._source.block_format(self._cuts[name].name)

    def nbytes(self, name: str) -> int:
        return self._parts.nbytes(name)

    def read_bytes(self, name: str, begin: int, target: Array) -> None:
        self._parts.read_bytes(name, begin, target)

    def read_blocks(self, name: str) -> Iterator[Array]:
        if name not in self._packed:
            return _of_numbers(self.read_rows(name))
        words, scales = f"{name} {_PACKED}", f"{name} {_SCALE}"
        return _blocks(self._parts.pieces(words, self.shape(name)[0]), self._parts.read(scales))


def _of_numbers(rows_of: Iterator[Array]) -> Iterator[Array]:
    """Yield dense rows as blocks of one number each."""
    for rows in rows_of:
        yield rows.reshape(-1, rows.shape[-1]).view(np.uint8).reshape(-1, rows.shape[-1], rows.itemsize)


def _blocks(words: Iterator[Array], scales: Array) -> Iterator[Array]:
    """Yield blocks of one group each: its scale, then its numbers in the order of GGUF files."""
    done = 0
    for rows in words:
        stored = rows.view(np.uint8).reshape(len(rows), -1, GROUP // 2)
        values = np.empty((*stored.shape[:-1], GROUP), np.uint8)
        values[..., 0::2], values[..., 1::2] = stored & 15, stored >> 4
        blocks = np.empty((*stored.shape[:-1], 2 + GROUP // 2), np.uint8)
        blocks[..., :2] = np.ascontiguousarray(scales[done : done + len(rows)])[..., None].view(np.uint8)
        blocks[..., 2:] = values[..., : GROUP // 2] | values[..., GROUP // 2 :] << 4
        done += len(rows)
        yield blocks


def _sibling(name: str, part: str) -> str:
    return f"{name.rpartition('.')[0]}.{part}"
