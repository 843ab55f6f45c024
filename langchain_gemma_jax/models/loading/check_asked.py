"""Checks of a caller's options that need no file: they run before a download."""

from __future__ import annotations

import jax

from langchain_gemma_jax.errors import InputError
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES
from langchain_gemma_jax.models.configuration.how_to_load import CACHE_DTYPES, HowToLoad
from langchain_gemma_jax.models.mesh.counts import checked_devices
from langchain_gemma_jax.models.packed.activations import checked_activations
from langchain_gemma_jax.models.seams.placement import Placement
from langchain_gemma_jax.models.seams.recipe import ROUNDED, Recipe
from langchain_gemma_jax.models.torchax.asked import is_for_torchax, refuse_for_torchax


def check_asked(
    source: object, how: HowToLoad, *, recipe: Recipe | None = None, device: jax.Device | Placement | None = None
) -> None:
    """Refuse options that are wrong for every file.

    Raises:
        InputError: an argument is not possible, or does not go with another.
    """
    checked_devices(how.devices, device)
    if is_for_torchax(source):
        refuse_for_torchax(recipe=recipe, weights=how.weights, activations=how.activations, drafter=how.drafter)
    elif how.trust_remote_code:
        raise InputError('trust_remote_code=True: only a model "torchax:..." can have code of its own. Leave it out.')
    asked_dtype(how.dtype, recipe)
    _check_cache(how.cache_dtype, recipe)
    checked_activations(how.activations)


def asked_dtype(dtype: str | None, recipe: Recipe | None) -> str | None:
    """Return the dtype that a caller asked for, as an option or in a recipe. None: in neither.

    Raises:
        InputError: the dtype is unknown or differs from the recipe's, or the recipe's ``cache_dtype`` is unknown.
    """
    if dtype is not None and dtype not in ITEM_BYTES:
        raise InputError(f"dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {dtype!r}.")
    if recipe is not None and dtype not in {None, recipe.dtype}:
        raise InputError(f"dtype={dtype!r} was asked for, with a recipe for {recipe.dtype}. Leave one of them out.")
    known = (*ITEM_BYTES, ROUNDED)
    if recipe is not None and recipe.cache_dtype is not None and recipe.cache_dtype not in known:
        raise InputError(f"cache_dtype: expected one of {', '.join(known)} or None, found {recipe.cache_dtype!r}.")
    return dtype if recipe is None else recipe.dtype


def _check_cache(asked: str | None, recipe: Recipe | None) -> None:
    if asked is not None and asked not in CACHE_DTYPES:
        raise InputError(f"cache_dtype: expected one of {', '.join(CACHE_DTYPES)} or None, found {asked!r}.")
    had = None if recipe is None else recipe.cache_dtype
    if asked is not None and had not in {None, asked}:
        raise InputError(f"cache_dtype={asked!r} was asked for, with a recipe that has {had!r}. Leave one of them out.")
