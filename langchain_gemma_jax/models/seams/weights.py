"""The interface of a stored matrix: its bytes, its product with rows, its rows as embeddings.

A dense matrix is one plain ``jax.Array``, and a ``Plan`` gives its layout and its product. A matrix that is stored in
another way, such as int8 with scales, is a ``Packed``: a pytree node whose leaves are the arrays that it is stored in.
``linear`` (``linear.py``), ``rows_of`` and ``matrix_at`` take either, and branch while JAX traces, so the choice costs
a compiled program nothing. Dense matrices have no wrapper class: training and ``from_gemma`` work with plain arrays,
and a dispatch, which flattens the whole tree, is 3 us faster (measured: 49 matrices in 12 layers).

A ``Storage`` is chosen before a byte is read. The weights to come are the same tree with an ``ArraySpec`` in place of
each array: programs are compiled, memory is reserved and bytes are counted with it. The dtype of products
(``Recipe.dtype``) and that of the cache (``Recipe.kv_dtype``) are separate settings.
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
    """Memory layout and forms of product of one kind of dense matrix. A packed matrix may take it as a hint."""

    out_first: bool = True  # memory holds [out, in]
    one_row: Form = Form.DOT
    few_rows: Form = Form.DOT  # 2 to FEW_ROWS rows; with a kernel, to kernel_rows
    many_rows: Form = Form.DOT  # more: one product, or the package's own
    kernel_rows: int = 64

    FEW_ROWS = FEW_ROWS
    EACH_UP_TO = 3

    def form(self, rows: int) -> Form:
        """Return the form of a product with ``rows`` rows."""
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
        """Bytes of the arrays that the matrix is stored in, or of their specs."""
        return total_bytes(self)

    @abstractmethod
    def product(self, x: jax.Array, plan: Plan, real: jax.Array | None = None) -> jax.Array:
        """Return ``x [..., in]`` times the matrix: float32 ``[..., out]``. ``plan`` is the plan of a dense matrix.

        ``real``, an int32, is the number of rows before the padding. The products of the padding are undefined.
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
    """The storage of a model's matrices. A recipe has one; it may store each matrix in another way.

    Storages are frozen dataclasses of plain values: a recipe is hashed, and the storage's ``repr`` and the source of
    its module are part of a compiled program's name.
    """

    dense = False  # True: each matrix is one array, and a file or a caller may still ask for another storage
    as_in_file = False  # True: matrices are taken as their file has them, and never made dense on the way

    @abstractmethod
    def abstract(self, path: Path, dense: ArraySpec) -> Any:
        """Return the spec of the matrix at ``path``: ``dense`` itself, or a ``Packed`` of ``ArraySpec``s."""

    def pack(self, path: Path, dense: ArraySpec, array: npt.NDArray[np.generic]) -> Any:  # noqa: ARG002
        """Return the numpy arrays of ``abstract(path, dense)``, made from the dense array in its stored layout.

        Raises:
            TypeError: this storage takes matrices as their file has them.
        """
        raise TypeError(f"{type(self).__name__} reads {'/'.join(map(str, path))} of {dense.shape} from a file, always")

    def read(
        self,
        stored: Any,
        source: TensorSource,
        parts: Sequence[Part],
        empty: Callable[[ArraySpec], npt.NDArray[np.generic]],
    ) -> Any:
        """Allocate the numpy arrays of ``stored`` with ``empty``, fill them from the stored parts, and return them.

        ``stored`` is the result of ``abstract`` for a matrix, or the same for one device's part of it.

        Raises:
            TypeError: this storage does not take matrices as their file has them.
        """
        del stored, source, parts, empty
        raise TypeError(f"{type(self).__name__} packs dense matrices, and reads none from a file")

    @property
    def stored_types(self) -> Collection[str]:
        """The stored types, other than dense dtypes, that it takes as they are."""
        return ()

    @property
    def block_forms(self) -> BlockForms | None:
        """The forms of product of its matrices in blocks. None: it has no such matrices."""
        return None

    def with_block_forms(self, forms: BlockForms) -> Storage:
        """Return the same storage with other forms of product.

        Raises:
            TypeError: this storage has no matrices in blocks.
        """
        raise TypeError(f"{type(self).__name__} has no matrices in blocks, and cannot be multiplied as {forms}")

    @property
    def rounds_by_kernel(self) -> bool:
        """True if kernels round activations to eight bits, which amplifies a difference in the last bit."""
        return False

    def has_dense(self, config: ModelConfig, dtype: str) -> bool:  # noqa: ARG002  most have, or leave it to the recipe
        """Return True if any matrix of the model is stored dense."""
        return True


@dataclass(frozen=True)
class Dense(Storage):
    """Storage of each matrix as one array, in the recipe's dtype and layout."""

    dense = True

    def abstract(self, path: Path, dense: ArraySpec) -> ArraySpec:  # noqa: ARG002  all are alike
        return dense

    def pack(self, path: Path, dense: ArraySpec, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:  # noqa: ARG002
        return array


DENSE = Dense()


def is_matrix(spec: ArraySpec) -> bool:
    """Return True for a matrix or a stack of matrices: only these go through a ``Storage``."""
    return len(spec.shape) > 1


def stored_as(storage: Storage, path: Path, dense: ArraySpec) -> Any:
    """Return the stored form of one array of the dense tree: an ``ArraySpec``, or a ``Packed`` of them."""
    return storage.abstract(path, dense) if is_matrix(dense) else dense


def stored(tree: Tree, storage: Storage) -> Any:
    """Return the tree of ``abstract(config)`` with the stored form of each array."""

    def all_of(specs: Mapping[str, ArraySpec], *at: str | int) -> dict[str, Any]:
        return {name: stored_as(storage, (*at, name), spec) for name, spec in specs.items()}

    return {
        name: [all_of(layer, name, index) for index, layer in enumerate(value)]
        if isinstance(value, list)
        else stored_as(storage, (name,), value)
        for name, value in tree.items()
    }


def total_bytes(tree: Any) -> int:
    """Return the bytes of every array in a tree. A spec counts as the array that it describes."""
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def map_specs(function: Callable[[ArraySpec], Any], tree: Any) -> Any:
    """Return the tree with ``function`` applied to each ``ArraySpec``."""
    return jax.tree.map(function, tree, is_leaf=lambda leaf: isinstance(leaf, ArraySpec))


def rows_of(weight: Weight, ids: jax.Array, plan: Plan) -> jax.Array:
    """Return the rows of a logical ``(rows, width)`` matrix for ids of any shape: float32 ``[..., width]``."""
    if isinstance(weight, Packed):
        return weight.rows(ids)
    if plan.out_first:
        return weight[ids].astype(jnp.float32)
    return jnp.moveaxis(weight[:, ids], 0, -1).astype(jnp.float32)


def matrix_at(weight: Weight, index: jax.Array) -> Weight:
    """Return one matrix of a stack, such as an expert's."""
    return weight.matrix_at(index) if isinstance(weight, Packed) else weight[index]
