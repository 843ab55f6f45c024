"""Matmul recipes: how weights lie in memory and are multiplied, chosen by measurement.

The thread that loads a model measures; what is chosen is traced with the model. The room owns the file in which
measurements are kept. It may import ``models.weights``, ``models.configuration`` and ``private``.
"""

from langchain_gemma_jax.models.recipes.choose import choose_recipe
from langchain_gemma_jax.models.seams.recipe import Attention, AttentionForm, BetweenForm, Recipe
from langchain_gemma_jax.models.seams.weights import Form, Plan

__all__ = ["Attention", "AttentionForm", "BetweenForm", "Form", "Plan", "Recipe", "choose_recipe"]
