"""Storage of matrices in the block formats of their file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from langchain_gemma_jax.errors import TensorMismatchError
from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract, walk
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.packed.block_formats import BLOCK_FORMATS, IN_GGUF
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.by_path import ByPath
from langchain_gemma_jax.models.packed.scaled import Scaled, scaled_specs
from langchain_gemma_jax.models.packed.splitting import split
from langchain_gemma_jax.models.seams.block_forms import BlockForms
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.tensor_source import Array, Naming, Part, TensorSource
from langchain_gemma_jax.models.seams.weights import is_matrix

Run: TypeAlias = tuple[str, int, bool]
"""The block format of a run of a matrix' outputs, the number of outputs in it, and whether the file scales it."""

_PLAIN = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


class BlockSource(TensorSource):
    """Stored tensors in block formats."""

    @property
    def mixture(self) -> str:
        """The name of the file's quantization, and its tensors' formats. Empty: it has none."""
        return ""

    @abstractmethod
    def block_format(self, name: str) -> str:
        """Return the block format of a tensor, by its name in GGUF files."""

    @abstractmethod
    def read_blocks(self, name: str) -> Iterator[Array]:
        """Yield the blocks of a tensor, a few rows at a time: uint8 ``[row, block, byte]``.

        The rows of a stack follow each other. A piece is contiguous, and valid until the next one is taken: pieces may
        share memory.
        """

    def factor_name(self, name: str) -> str | None:  # noqa: ARG002  most formats have none
        """Return the name of the tensor with a matrix' factor, or with those of a stack's matrices. None: no factor."""
        return None

    def read_factors(self, name: str) -> Array:
        """Return the factors of the matrices in a tensor that has some."""
        raise NotImplementedError(f"{type(self).__name__} has no factor of {name!r}")


@dataclass(frozen=True)
class AsInFile(ByPath[Run]):
    """Storage of each matrix in the block formats of its file. Dense matrices in the dtype of products stay dense."""

    @property
    def stored_types(self) -> Collection[str]:
        return BLOCK_FORMATS

    @property
    def rounds_by_kernel(self) -> bool:
        return self.forms.rounds_by_kernel

    def specs(self, how: Run, dense: ArraySpec) -> tuple[BlockMatrix | Scaled, int]:
        kind, outputs, is_scaled = how
        blocks = specs_of(kind, outputs, dense, self.forms)
        return (scaled_specs(blocks, outputs, dense) if is_scaled else blocks), outputs

    def read(
        self,
        stored: Any,
        source: TensorSource,
        parts: Sequence[Part],
        empty: Callable[[ArraySpec], Array],
    ) -> Any:
        if not isinstance(source, BlockSource):
            raise TypeError(f"expected a source of blocks, found {type(source).__name__}")
        runs = stored.weights if isinstance(stored, Stacked) else (stored,)
        waiting, matrices = list(parts), list[BlockMatrix | Scaled]()
        for each in runs:
            run, scale = (each.blocks, each.factors) if isinstance(each, Scaled) else (each, None)
            arrays = tuple(empty(spec) for spec in run.parts)
            factors = None if scale is None else empty(scale)
            first, total = 0, run.outputs
            while first < total:
                part = waiting.pop(0)
                outputs = slice(first, first + part.shape[-2])
                self._fill(source, part, run.kind, arrays, outputs)
                if factors is not None:
                    stack = part.shape[:-2]
                    factors[..., outputs] = source.read_factors(part.name).reshape(*stack, 1)
                first = outputs.stop
            blocks = BlockMatrix(arrays, run.kind, run.dtype, run.forms)
            matrices.append(blocks if factors is None else Scaled(blocks, factors))
        return matrices[0] if len(matrices) == 1 else Stacked(tuple(matrices), stored.outputs)

    def _fill(self, source: BlockSource, part: Part, kind: str, arrays: Sequence[Array], outputs: slice) -> None:
        """Read one tensor to its place in the arrays: the ``outputs`` of each matrix."""
        each = part.shape[-2]
        count = int(np.prod(part.shape[:-2], dtype=np.int64))
        targets = [array.reshape(count, *array.shape[len(part.shape) - 2 :])[:, outputs] for array in arrays]
        row = 0
        for piece in source.read_blocks(part.name):
            done = 0
            while done < len(piece):  # a piece may reach into the next matrix of a stack
                one, at = divmod(row, each)
                some = min(each - at, len(piece) - done)
                blocks, rooms = piece[done : done + some], [target[one, at : at + some] for target in targets]
                split(BLOCK_FORMATS[kind], blocks.view(np.uint8), rooms)
                done, row = done + some, row + some


def specs_of(kind: str, outputs: int, dense: ArraySpec, forms: BlockForms) -> BlockMatrix:
    """Return the specs of a run of a matrix' outputs in a block format."""
    known = BLOCK_FORMATS[kind]
    *stack, _, inputs = dense.shape
    shape = (*stack, outputs, inputs // known.elements)
    sections = dense.sections
    if sections and dense.along == len(dense.shape) - 1:  # a device's part begins where a block does
        sections = tuple(replace(section, block=known.elements) for section in sections)
    parts = tuple(
        ArraySpec(
            (*shape, *part.shape),
            part.dtype,
            axes=(*dense.axes, *("block",) * len(part.shape)),
            along=dense.along,
            sections=sections,
        )
        for part in known.parts
    )
    return BlockMatrix(parts, kind, dense.dtype, forms)


def as_in_file(source: BlockSource, naming: Naming, config: ModelConfig, dtype: str, forms: BlockForms) -> AsInFile:
    """Return the storage of a model in its file.

    Raises:
        TensorMismatchError: a matrix is in a block format that is not read here, or its factor is no number.
    """
    stored, specs = [], dict(walk(abstract(config, dtype)))
    arrays = {part.name for path in specs for part in naming(config, path)}  # some have the name of a factor
    for path, spec in specs.items():
        if not is_matrix(spec):
            continue
        runs: list[Run] = []
        for part in naming(config, path):
            # For a missing tensor, ``place`` raises the error.
            kind = source.block_format(part.name) if part.name in source.names() else _PLAIN[dtype]
            if kind not in BLOCK_FORMATS:
                advice = "Take another file of the same repository, such as one in Q8_0 or Q4_K_M."
                found = f"{kind}, in a file of {source.mixture}" if source.mixture else kind
                raise TensorMismatchError(source.location, f"{part.name!r} in {', '.join(IN_GGUF)}", found, advice)
            outputs, factor = part.shape[-2], source.factor_name(part.name)
            is_scaled = factor is not None and factor not in arrays
            if factor is not None and is_scaled:
                _check_factor(source, factor, part.shape[:-2])
            if runs and (runs[-1][0], runs[-1][2]) == (kind, is_scaled):
                outputs += runs.pop()[1]
            runs.append((kind, outputs, is_scaled))
        if runs != [(_PLAIN[dtype], spec.shape[-2], False)]:
            stored.append((path, tuple(runs)))
    return AsInFile(tuple(stored), forms)


def _check_factor(source: BlockSource, name: str, stack: tuple[int, ...]) -> None:
    shape, dtype = source.shape(name), source.dtype(name)
    if shape != (stack or (1,)) or dtype != "float32":
        expected = f"{name!r} to be {list(stack or (1,))} in float32, a factor for each matrix"
        raise TensorMismatchError(source.location, expected, f"{list(shape)} in {dtype}")


class BlockCheckpoint(Checkpoint[BlockSource]):
    """A model whose matrices are stored in block formats, and stay in them."""

    @property
    def packed(self) -> bool:
        return True

    def storage(self, dtype: str, forms: BlockForms) -> AsInFile:
        return as_in_file(self.tensors, self.naming, self.config, dtype, forms)
