"""How a model's matrices are stored and multiplied: what a caller asks for, and what its files leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from langchain_gemma_jax.errors import InputError, UnsupportedModelError
from langchain_gemma_jax.models.seams.tensor_source import Naming, TensorSource
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.packed.blocks import BlockForm, BlockForms
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms
from langchain_gemma_jax.models.packed.from_file import AsInFile, BlockSource, as_in_file
from langchain_gemma_jax.models.checkpoint.quantised.mobile import MobileSource, PerChannel, per_channel
from langchain_gemma_jax.models.packed.quantise import Quantised, quantised
from langchain_gemma_jax.models.seams.recipe import Attention, AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import PLAIN, Dense

BY_KERNEL = Attention(AttentionForm.KERNEL, AttentionForm.KERNEL)


@dataclass(frozen=True)
class AskedStorage:
    """What a caller says of how matrices are stored and multiplied, beside a recipe."""

    weights: str | None
    activations: str | None
    divided: bool  # among devices
    unasked: str | None = None  # activations where the caller says nothing; None: what is fastest

    def beside(self, recipe: Recipe) -> AskedStorage:
        """Return the same for a caller's own recipe: where it leaves more to XLA, nothing is rounded unasked.

        What XLA makes of several rows can differ in its last bits from what it makes of one.
        """
        by_kernels = recipe.attention == BY_KERNEL and recipe.between is BetweenForm.KERNEL
        if self.activations is not None or by_kernels or not isinstance(recipe.storage, Dense):
            return self
        return replace(self, unasked="float32")

    def of_dense(self, recipe: Recipe, source: TensorSource) -> Recipe:
        """Return the recipe for files that have matrices dense, which are packed if that is asked for.

        Raises:
            InputError: what is asked for does not go together.
        """
        weights, activations, storage = self.weights, self.activations, recipe.storage
        if weights is not None:
            if not isinstance(storage, Dense):
                raise InputError(
                    f"weights={weights!r} was asked for, with a recipe that stores them. Leave one of them out."
                )
            return replace(recipe, storage=quantised(weights, self._forms(storage)))
        if activations is None:
            return recipe
        if isinstance(storage, Quantised):
            return replace(recipe, storage=replace(storage, forms=self._forms(storage)))
        if activations != "float32":
            raise InputError(
                f"{source.location}: activations={activations!r} is for packed weights, and these are dense. Leave it "
                'out, or ask for weights="int8" too.'
            )
        return recipe

    def as_in_file(
        self, source: BlockSource | MobileSource, naming: Naming, config: ModelConfig, recipe: Recipe
    ) -> Recipe:
        """Return the recipe for matrices that stay as their files have them.

        Raises:
            InputError: something else is asked for. UnsupportedModelError: it cannot be divided among devices.
        """
        if self.weights is not None:
            raise InputError(
                f"{source.location}: weights={self.weights!r} is for dense checkpoints; these are packed already."
            )
        if not isinstance(recipe.storage, Dense | AsInFile | PerChannel):
            advice = "cannot be stored in another way"
            raise InputError(f"{source.location}: its weights stay as they are in the file, and {advice}.")
        if isinstance(source, MobileSource) and self.divided:
            raise UnsupportedModelError(
                f"{source.location}: a mobile release has grids for sums that devices would have parts of. It is made "
                "for one device: leave devices out."
            )
        if isinstance(source, MobileSource) and self.activations is not None:
            raise InputError(
                f"{source.location}: its activations are on grids that are a part of the model. Leave them out."
            )
        facts = naming, config, recipe.dtype, self._forms(recipe.storage)
        storage = per_channel(source, *facts) if isinstance(source, MobileSource) else as_in_file(source, *facts)
        if storage.has_dense(config, recipe.dtype):
            return replace(recipe, storage=storage)
        return replace(recipe, storage=storage, layers=PLAIN, embed=PLAIN)  # how dense ones are multiplied says nothing

    def _forms(self, storage: Dense | AsInFile | PerChannel | Quantised) -> BlockForms:
        """Return how matrices in blocks are multiplied: as a storage says that brings it, else as is fastest here."""
        if isinstance(storage, Dense):
            return choose_block_forms(self.activations or self.unasked, divided=self.divided)
        forms = storage.forms
        return forms if self.activations is None else replace(forms, activations=self.activations)


def exact(recipe: Recipe) -> Recipe:
    """Return a recipe that was chosen here as one in which a token is the same to the bit however it was read.

    Rounding to eight bits makes much of a last bit, and attention by XLA gives another one in a longer chunk.
    """
    storage = recipe.storage
    forms = storage.forms if isinstance(storage, AsInFile | Quantised) else None
    if forms is None or forms.activations != "int8" or forms.one_row is not BlockForm.KERNEL:
        return recipe
    return replace(recipe, attention=BY_KERNEL, between=BetweenForm.KERNEL)
