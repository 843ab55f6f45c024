"""Storage of matrices in the forms of their files, by their path in the parameter tree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, abstract, walk
from langchain_gemma_jax.models.configuration.division import cut
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.packed.blocks import Stacked
from langchain_gemma_jax.models.seams.block_forms import DEFAULT, BlockForms
from langchain_gemma_jax.models.seams.weights import Packed, Storage, is_matrix

How = TypeVar("How")


@dataclass(frozen=True)
class ByPath(Storage, Generic[How]):
    """Storage of each matrix as in its file, in one run of outputs or several. Dense matrices stay dense."""

    stored: tuple[tuple[Path, tuple[How, ...]], ...]  # of packed matrices: the storage of each run of outputs
    forms: BlockForms = DEFAULT
    _known: Mapping[Path, tuple[How, ...]] = field(init=False, repr=False, compare=False)

    as_in_file = True

    def __post_init__(self) -> None:
        """Make the look-up table by path."""
        object.__setattr__(self, "_known", dict(self.stored))

    @property
    def block_forms(self) -> BlockForms:
        return self.forms

    def with_block_forms(self, forms: BlockForms) -> ByPath[How]:
        return replace(self, forms=forms)

    @abstractmethod
    def specs(self, how: How, dense: ArraySpec) -> tuple[Packed, int]:
        """Return the specs of a run of a matrix' outputs, and the number of outputs in it."""

    def has_dense(self, config: ModelConfig, dtype: str) -> bool:
        """Return True if any matrix of the model is dense in its file, and stays dense."""
        return any(is_matrix(spec) and path not in self._known for path, spec in walk(abstract(config, dtype)))

    def abstract(self, path: Path, dense: ArraySpec) -> Any:
        if (known := self._known.get(path)) is None:
            return dense
        runs = [self.specs(each, dense) for each in known]
        if len(runs) > 1 and dense.sections and dense.along == len(dense.shape) - 2:  # each run has some of them
            outputs = tuple(count for _, count in runs)
            each_run = zip(known, cut(dense.sections, outputs), strict=True)
            runs = [self.specs(how, replace(dense, sections=sections)) for how, sections in each_run]
        specs, outputs = zip(*runs, strict=True)
        return specs[0] if len(specs) == 1 else Stacked(specs, outputs)
