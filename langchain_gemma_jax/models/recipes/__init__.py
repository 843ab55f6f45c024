"""Matmul recipes: how weights lie in memory and are multiplied, chosen by measurement."""

from langchain_gemma_jax.models.recipes.choose import choose_recipe
from langchain_gemma_jax.models.recipes.recipe import Recipe
from langchain_gemma_jax.models.weights import Form, Plan

__all__ = ["Form", "Plan", "Recipe", "choose_recipe"]
