"""A model's stored weights: open and checked, and not yet read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.seams.tensor_source import Naming, TensorSource

if TYPE_CHECKING:  # files are found and checked without JAX
    from langchain_gemma_jax.models.seams.block_forms import BlockForms
    from langchain_gemma_jax.models.seams.weights import Storage

Source_co = TypeVar("Source_co", bound=TensorSource, covariant=True)


class Checkpoint(NamedTuple, Generic[Source_co]):
    """A model in files: what it is, its tensors, and what they are called. Closing ``tensors`` closes the files.

    This one has its matrices dense. A format that packs them has a subclass, which says how they stay packed.
    """

    config: ModelConfig
    tensors: Source_co
    naming: Naming

    @property
    def packed(self) -> bool:
        """Return True if matrices stay as the files have them."""
        return False

    @property
    def tables_packed(self) -> bool:
        """Return True if tables of tokens are packed too: then none of them says in which dtype products are taken."""
        return False

    def storage(self, dtype: str, forms: BlockForms) -> Storage:  # noqa: ARG002  dense ones are stored in any way
        """Return how its matrices are stored where products are taken in a dtype, and blocks multiplied by ``forms``.

        Raises:
            TensorMismatchError: a matrix is in a format that is not read here.
        """
        from langchain_gemma_jax.models.seams.weights import DENSE

        return DENSE

    def check_asked(self, activations: str | None, *, divided: bool) -> None:
        """Refuse what a caller asks for and this format cannot do.

        Raises:
            InputError, UnsupportedModelError: it cannot be multiplied so, or divided among devices.
        """
