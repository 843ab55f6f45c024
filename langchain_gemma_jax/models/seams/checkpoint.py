"""A model's stored weights: open and checked, but not read yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.tensor_source import Naming, TensorSource

if TYPE_CHECKING:  # files are found and checked without JAX
    from langchain_gemma_jax.models.seams.block_forms import BlockForms
    from langchain_gemma_jax.models.seams.weights import Storage

Source_co = TypeVar("Source_co", bound=TensorSource, covariant=True)


class Checkpoint(NamedTuple, Generic[Source_co]):
    """A model in files: its configuration, its tensors, and their names. Closing ``tensors`` closes the files.

    This class is for dense matrices. A format that packs matrices has a subclass, which keeps them packed.
    """

    config: ModelConfig
    tensors: Source_co
    naming: Naming

    @property
    def packed(self) -> bool:
        """True if matrices stay as the files have them."""
        return False

    @property
    def tables_packed(self) -> bool:
        """True if token tables are packed too: then no table tells the dtype of products."""
        return False

    def storage(self, dtype: str, forms: BlockForms) -> Storage:  # noqa: ARG002  dense ones are stored in any way
        """Return the storage of its matrices, for products in ``dtype`` and blocks multiplied by ``forms``.

        Raises:
            TensorMismatchError: a matrix is in a format that is not read here.
        """
        from langchain_gemma_jax.models.seams.weights import DENSE

        return DENSE

    def check_asked(self, activations: str | None, *, divided: bool) -> None:
        """Refuse options that this format does not support.

        Raises:
            InputError, UnsupportedModelError: these activations, or division among devices, are not supported.
        """
