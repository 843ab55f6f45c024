"""How a matrix is stored, and all that a model asks of it: its bytes, its product with rows, its rows as embeddings.

A dense matrix is one plain ``jax.Array``, and a ``Plan`` says how it lies and is multiplied. One that is stored in
another way, as int8 with scales say, is a ``Packed``: a pytree node whose leaves are the arrays that it is stored in.
``linear`` (``linear.py``), ``rows_of`` and ``matrix_at`` take either and tell them apart while JAX traces, so
the choice costs a compiled program nothing. Dense matrices are not wrapped in a class of their own: everybody who
holds parameters, training and ``from_gemma`` included, goes on with plain arrays, and a dispatch, which takes the
whole tree apart, does so 3 us sooner (measured: 49 matrices in 12 layers).

A ``Storage`` decides before a byte is read. What a weight will be is the same tree with an ``ArraySpec`` in place of
each array: programs are compiled, memory is reserved and bytes are counted with that. The dtype that products are
taken in (``Recipe.dtype``) and the cache's (``Recipe.kv_dtype``) are other settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from langchain_gemma_jax.models.configuration.abstract import ArraySpec, Path, Tree
from langchain_gemma_jax.models.seams.block_forms import FEW_ROWS, BlockForms

if TYPE_CHECKING:
    from langchain_gemma_jax.models.configuration.model_config import ModelConfig
    from langchain_gemma_jax.models.seams.tensor_source import Part, TensorSource


class Form(StrEnum):
    """One way to compute ``x @ w`` for a few rows of ``x``. All give the same numbers up to rounding."""

    DOT = "dot"  # one product, as written
    EACH_ROW = "each_row"  # one product a row: where one row is fast and several fall off a cliff
    WEIGHTS_FIRST = "weights_first"  # the weights as the left operand, for more than EACH_UP_TO rows; else each row
    PAD_ROWS = "pad_rows"  # a lone row doubled: where it is the other way round
    KERNEL = "kernel"  # by the package's own code, where that runs and memory holds [out, in]; else one product


@dataclass(frozen=True)
class Plan:
    """How one kind of dense matrix lies in memory and is multiplied. A packed one may take it as a hint."""

    out_first: bool = True  # memory holds [out, in]
    one_row: Form = Form.DOT
    few_rows: Form = Form.DOT  # 2 to FEW_ROWS rows; with a kernel, to kernel_rows
    many_rows: Form = Form.DOT  # more: one product, or the package's own
    kernel_rows: int = 64

    FEW_ROWS = FEW_ROWS
    EACH_UP_TO = 3

    def form(self, rows: int) -> Form:
        """Return the form of a product with so many rows."""
        if rows == 1:
            return self.one_row
        return self.few_rows if rows <= self.most_of_few else self.many_rows

    @property
    def most_of_few(self) -> int:
        """The largest number of rows that counts as few."""
        return self.kernel_rows if self.few_rows is Form.KERNEL else self.FEW_ROWS


PLAIN = Plan()


class Packed(ABC):
    """A matrix ``(outputs, inputs)``, or a stack of them, that is not stored as one dense array.

    An implementation is a frozen dataclass that is registered with ``jax.tree_util.register_dataclass``: its arrays
    are the data fields, and what is static (the dtype that products are taken in, say) the other ones. The same class
    holds arrays, their ``ArraySpec``s, and what JAX puts in their place while it traces.
    """

    @property
    def nbytes(self) -> int:
        """The bytes that it is stored in, of arrays and of what they will be alike."""
        return total_bytes(self)

    @abstractmethod
    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        """Return ``x [..., in]`` times the matrix: float32 ``[..., out]``. ``plan`` is what a dense one would do.

        ``real``, an int32, says how many rows are no padding. What becomes of the others is the matrix's choice.
        """

    @abstractmethod
    def rows(self, ids: jax.Array) -> jax.Array:
        """Return the rows of these outputs, unpacked: float32 ``[..., in]``. The others stay packed."""

    @abstractmethod
    def matrix_at(self, index: jax.Array) -> Weight:
        """Return one matrix of a stack."""


Weight: TypeAlias = "jax.Array | Packed"

Layer: TypeAlias = Mapping[str, Any]
"""One layer's parameters by the names of ``abstract(config)``: an array for a vector, a ``Weight`` for a matrix."""


class Storage(ABC):
    """How a model's matrices are stored. One recipe has one; each matrix may still be stored in a way of its own.

    Storages are frozen dataclasses of plain values: a recipe is hashed, and the storage's ``repr`` and the source of
    its module are parts of a compiled program's name.
    """

    dense = False  # each matrix is one array, so a recipe leaves open what a file or a caller asks for
    as_in_file = False  # matrices are taken as their file has them: nothing is made dense on the way

    @abstractmethod
    def abstract(self, path: Path, dense: ArraySpec) -> Any:
        """Return what stands for the matrix at ``path``: ``dense`` itself, or a ``Packed`` of ``ArraySpec``s."""

    def pack(self, path: Path, dense: ArraySpec, array: npt.NDArray[np.generic]) -> Any:  # noqa: ARG002
        """Return the numpy arrays of ``abstract(path, dense)``, made from the dense array in its stored layout.

        Raises:
            TypeError: it takes matrices as their file has them.
        """
        raise TypeError(f"{type(self).__name__} reads {'/'.join(map(str, path))} of {dense.shape} from a file, always")

    def read(
        self,
        stored: Any,
        source: TensorSource,
        parts: Sequence[Part],
        empty: Callable[[ArraySpec], npt.NDArray[np.generic]],
    ) -> Any:
        """Return the numpy arrays of ``stored``, which ``empty`` makes, filled from the stored parts.

        ``stored`` is what ``abstract`` gave for a matrix, or the same for one device's part of it.

        Raises:
            TypeError: it does not take matrices as their file has them.
        """
        del stored, source, parts, empty
        raise TypeError(f"{type(self).__name__} packs dense matrices, and reads none from a file")

    @property
    def kinds(self) -> Collection[str]:
        """The stored types, beside the dtypes of dense ones, that it takes as they are."""
        return ()

    @property
    def block_forms(self) -> BlockForms | None:
        """How its matrices in blocks are multiplied. None: it has none."""
        return None

    def with_block_forms(self, forms: BlockForms) -> Storage:
        """Return the same storage with products taken in another way.

        Raises:
            TypeError: it has no matrices in blocks.
        """
        raise TypeError(f"{type(self).__name__} has no matrices in blocks, and cannot be multiplied as {forms}")

    @property
    def rounds_by_kernel(self) -> bool:
        """Return True if kernels round activations to eight bits, which makes much of a last bit."""
        return False

    def has_dense(self, config: ModelConfig, dtype: str) -> bool:  # noqa: ARG002  most have, or leave it to the recipe
        """Return True if any matrix of the model is stored dense."""
        return True


@dataclass(frozen=True)
class Dense(Storage):
    """Each matrix as one array of the recipe's dtype and layout."""

    dense = True

    def abstract(self, path: Path, dense: ArraySpec) -> ArraySpec:  # noqa: ARG002  all are alike
        return dense

    def pack(self, path: Path, dense: ArraySpec, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:  # noqa: ARG002
        return array


DENSE = Dense()


def is_matrix(spec: ArraySpec) -> bool:
    """Whether this is a matrix or a stack of them: a storage is asked only for those."""
    return len(spec.shape) > 1


def stored_as(storage: Storage, path: Path, dense: ArraySpec) -> Any:
    """What stands in memory for an array of the dense tree: an ``ArraySpec``, or a ``Packed`` of them."""
    return storage.abstract(path, dense) if is_matrix(dense) else dense


def stored(tree: Tree, storage: Storage) -> Any:
    """The tree of ``abstract(config)`` with what stands in memory for each of its arrays."""

    def all_of(specs: Mapping[str, ArraySpec], *at: str | int) -> dict[str, Any]:
        return {name: stored_as(storage, (*at, name), spec) for name, spec in specs.items()}

    return {
        name: [all_of(layer, name, index) for index, layer in enumerate(value)]
        if isinstance(value, list)
        else stored_as(storage, (name,), value)
        for name, value in tree.items()
    }


def total_bytes(tree: Any) -> int:
    """The bytes of every array in a tree, or of every array that is to be: specs count as what they describe."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def map_specs(function: Callable[[ArraySpec], Any], tree: Any) -> Any:
    """The tree with something else in place of each ``ArraySpec``."""
    return jax.tree.map(function, tree, is_leaf=lambda leaf: isinstance(leaf, ArraySpec))


def rows_of(weight: Weight, ids: jax.Array, plan: Plan) -> jax.Array:
    """Look up the rows of a logical ``(rows, width)`` matrix: float32 ``[..., width]`` for ids of any shape."""
    if isinstance(weight, Packed):
        return weight.rows(ids)
    if plan.out_first:
        return weight[ids].astype(jnp.float32)
    return jnp.moveaxis(weight[:, ids], 0, -1).astype(jnp.float32)


def matrix_at(weight: Weight, index: jax.Array) -> Weight:
    """One matrix of a stack: an expert's."""
    return weight.matrix_at(index) if isinstance(weight, Packed) else weight[index]
