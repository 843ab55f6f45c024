"""The choice of a model's storage: from a caller's options and the format of the model's files."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.packed.choose_forms import choose_block_forms
from langchain_gemma_jax.models.packed.quantize import quantized
from langchain_gemma_jax.models.recipes import choose_recipe
from langchain_gemma_jax.models.recipes.default import default_recipe
from langchain_gemma_jax.models.seams.block_forms import BlockForms
from langchain_gemma_jax.models.seams.checkpoint import Checkpoint
from langchain_gemma_jax.models.seams.recipe import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import PLAIN, Storage


@dataclass(frozen=True)
class AskedStorage:
    """A caller's options of how matrices are stored and multiplied, in addition to a recipe."""

    weights: str | None
    activations: str | None
    divided: bool  # among devices
    default_activations: str | None = None  # where ``activations`` is None; None: the fastest
    cache_dtype: str | None = None  # None: the recipe's

    def for_own_recipe(self, recipe: Recipe) -> AskedStorage:
        """Return the options for a caller's own recipe: where XLA does some operations, rounding is off by default.

        XLA's results for several rows can differ in their last bits from those for one row.
        """
        by_kernels = recipe.attention is AttentionForm.KERNEL and recipe.between is BetweenForm.KERNEL
        if self.activations is not None or by_kernels or not recipe.storage.dense:
            return self
        return replace(self, default_activations="float32")

    def chosen(self, checkpoint: Checkpoint[Any], dtype: str) -> Recipe:
        """Return the fastest recipe here, with the storage that the files or the caller ask for.

        Where every matrix is packed and multiplied by kernels, there is nothing to choose, and nothing is measured.

        Raises:
            InputError, UnsupportedModelError: the options contradict each other, or do not fit these files.
        """
        if checkpoint.packed:
            found = self.recipe_for(checkpoint, default_recipe(dtype, jax.default_backend()))
            if found.storage.rounds_by_kernel and not found.storage.has_dense(checkpoint.config, dtype):
                return exact(found)
        return exact(self.recipe_for(checkpoint, choose_recipe(dtype, divided=self.divided)))

    def recipe_for(self, checkpoint: Checkpoint[Any], recipe: Recipe) -> Recipe:
        """Return the recipe with the storage that the files or the caller ask for.

        Raises:
            InputError, UnsupportedModelError: the options contradict each other, or do not fit these files.
        """
        if self.cache_dtype is not None:
            recipe = replace(recipe, cache_dtype=self.cache_dtype)
        if checkpoint.packed:
            return self._as_in_file(checkpoint, recipe)
        return self._of_dense(recipe, checkpoint.tensors.location)

    def _of_dense(self, recipe: Recipe, location: str) -> Recipe:
        weights, activations, storage = self.weights, self.activations, recipe.storage
        if weights is not None:
            if not storage.dense:
                raise InputError(
                    f"weights={weights!r} was asked for, with a recipe that stores them. Leave one of them out."
                )
            return replace(recipe, storage=quantized(weights, self._forms(storage)))
        if activations is None:
            return recipe
        if storage.block_forms is not None:
            return replace(recipe, storage=storage.with_block_forms(self._forms(storage)))
        if activations != "float32":
            raise InputError(
                f"{location}: activations={activations!r} is for packed weights, and these are dense. Leave it out, or "
                'ask for weights="int8" too.'
            )
        return recipe

    def _as_in_file(self, checkpoint: Checkpoint[Any], recipe: Recipe) -> Recipe:
        location = checkpoint.tensors.location
        if self.weights is not None:
            raise InputError(
                f"{location}: weights={self.weights!r} is for dense checkpoints; these are packed already."
            )
        if not (recipe.storage.dense or recipe.storage.as_in_file):
            advice = "cannot be stored in another way"
            raise InputError(f"{location}: its weights stay as they are in the file, and {advice}.")
        checkpoint.check_asked(self.activations, divided=self.divided)
        storage = checkpoint.storage(recipe.dtype, self._forms(recipe.storage))
        if storage.has_dense(checkpoint.config, recipe.dtype):
            return replace(recipe, storage=storage)
        return replace(recipe, storage=storage, layers=PLAIN, embed=PLAIN)  # there are no dense matrices to plan for

    def _forms(self, storage: Storage) -> BlockForms:
        """Return the forms of product of matrices in blocks: the storage's own, else the fastest ones here."""
        if (forms := storage.block_forms) is None:
            return choose_block_forms(self.activations or self.default_activations, divided=self.divided)
        return forms if self.activations is None else replace(forms, activations=self.activations)


def exact(recipe: Recipe) -> Recipe:
    """Return a chosen recipe with exact reuse: a token's keys and values have the same bits in chunks of any length.

    Rounding to eight bits amplifies a difference in the last bit, and XLA's attention has such differences between
    chunks of different lengths. So where activations are rounded by kernels, kernels attend too. Their keys and values
    are kept in sixteen bits: on a text, the loss of a 270M changes by 0.02 % (by 0.05 % in bfloat16).
    """
    if not recipe.storage.rounds_by_kernel:
        return recipe
    kept = recipe.cache_dtype or "float16"
    return replace(recipe, attention=AttentionForm.KERNEL, between=BetweenForm.KERNEL, cache_dtype=kept)
