from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, abstract, walk
from langchain_gemma_jax.models.packed.blocks import BlockMatrix, Stacked
from langchain_gemma_jax.models.packed.by_path import ByPath
from langchain_gemma_jax.models.packed.from_file import specs_of
from langchain_gemma_jax.models.seams.weights import is_matrix
from tests.engine.tiny import CONFIGS

CONFIG = CONFIGS["local and global"]


@dataclass(frozen=True)
class Rows(ByPath[int]):
    """So many outputs of a matrix, a run each, all in one format."""

    @property
    def stored_types(self) -> Collection[str]:
        return ("Q8_0",)

    def specs(self, how: int, dense: ArraySpec) -> tuple[BlockMatrix, int]:
        return specs_of("Q8_0", how, dense, self.forms), how

    def read(self, *_: Any) -> Any:
        raise NotImplementedError


def test_what_is_named_is_packed_run_by_run_and_the_rest_stays_dense():
    matrices = {path: spec for path, spec in walk(abstract(CONFIG, "float32")) if is_matrix(spec)}
    first, second, *others = matrices
    storage = Rows(((first, (matrices[first].shape[-2],)), (second, (8, matrices[second].shape[-2] - 8))))
    one, two = (storage.abstract(path, matrices[path]) for path in (first, second))
    assert isinstance(one, BlockMatrix)
    assert isinstance(two, Stacked)
    assert [each.outputs for each in two.weights] == list(two.outputs) == [8, matrices[second].shape[-2] - 8]
    assert storage.abstract(others[0], matrices[others[0]]) is matrices[others[0]]
    assert storage.has_dense(CONFIG, "float32")
    everything = Rows(tuple((path, (spec.shape[-2],)) for path, spec in matrices.items()))
    assert not everything.has_dense(CONFIG, "float32")
    assert everything == Rows(everything.stored)
    assert hash(everything) == hash(Rows(everything.stored))
