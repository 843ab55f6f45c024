"""Matmul recipes: the memory layout and the products of weights, chosen by measurement.

The thread that loads a model measures; the chosen recipe is traced with the model. The room owns the file in which
measurements are stored. It may import ``models.weights``, ``models.configuration`` and ``private``.
"""

from langchain_gemma_jax.models.recipes.choose import choose_recipe
from langchain_gemma_jax.models.seams.recipe import AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import Form, Plan

__all__ = ["AttentionForm", "BetweenForm", "Form", "Plan", "Recipe", "choose_recipe"]
