"""Serve weights that live in the official library: the tree that it loaded, tuned or trained."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.errors import TokenizerError
from langchain_gemma_jax.models.checkpoint.official.gemma_config import like_published, read_architecture
from langchain_gemma_jax.models.checkpoint.official.gemma_memory import Tree, TreeSource
from langchain_gemma_jax.models.checkpoint.official.gemma_shapes import check_all_used, find_naming
from langchain_gemma_jax.models.configuration.catalog import known
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.loading.check_asked import asked_dtype
from langchain_gemma_jax.models.loading.model import Model
from langchain_gemma_jax.models.loading.place import default_dtype, place
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.seams.placement import Placement, placement_of
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer


def from_gemma(
    model: object,
    params: Tree,
    *,
    dtype: str | None = None,
    recipe: Recipe | None = None,
    device: jax.Device | Placement | None = None,
    tokenizer: Tokenizer | str | os.PathLike[str] | None = None,
    config: ModelConfig | None = None,
) -> Model:
    """Make a model of the official library, with its parameters, one of this package.

        model = gm.nn.Gemma3_1B()
        params = gm.ckpts.load_params(...)                      # or what your training made
        served = from_gemma(model, params, tokenizer="./gemma-3-1b-it")

    The parameters are copied, one array at a time; ``params`` stays yours, and later changes to it do not
    show here. Of a multimodal model the text tower is taken.

    Args:
        model: the library's module, such as ``gm.nn.Gemma3_1B()``. Only its configuration is read.
        params: its tree, as the library loads and saves it, with or without ``{"params": ...}`` around it.
        dtype: of the matrices on the device: "bfloat16", "float32" or "float16". The tree's own by default,
            but float32 for a float16 one.
        recipe: how matrices lie in memory and are multiplied, and so their dtype. By default the fastest on this
            machine.
        device: where the weights go, a device or a placement. By default the first device of JAX.
        tokenizer: one that is loaded, or the folder that its ``tokenizer.json`` or ``tokenizer.model`` is in.
            Without it the model computes, and raises ``TokenizerError`` as soon as there is text to encode.
        config: the architecture, instead of what ``model`` says.

    Raises:
        InputError: an argument is not possible; among these ``UnsupportedModelError`` for a Gemma 3n, LoRA
            adapters (merge them first) or quantised weights, and ``ConfigError`` for what is no Gemma.
        CheckpointError: the tree is not that of this model; or the tokenizer cannot be used.

    Nothing stays on the device after an error.
    """
    ancestry.refuse_forked()
    asked = asked_dtype(dtype, recipe)
    name = type(model).__name__
    if config is None:
        config = like_published(read_architecture(model), known().values())
    source = TreeSource(params, f"the tree given with {name}")
    naming = find_naming(config, source.tower)
    check_all_used(config, naming, source.tower, source.location)
    dtype = asked or default_dtype(source, naming, config)
    found = _tokenizer(tokenizer, name)
    where = placement_of(device)
    recipe = recipe or choose_recipe(dtype, divided=not where.one_device)
    placed = place(source, naming, config, dtype, recipe.layout, where, storage=recipe.storage)
    return Model(Gemma(config), placed, found, recipe, name, placed=where)


def _tokenizer(given: Tokenizer | str | os.PathLike[str] | None, name: str) -> Tokenizer:
    if given is None:
        return cast("Tokenizer", _NoTokenizer(name))
    return given if isinstance(given, Tokenizer) else load_tokenizer(Path(given))


class _NoTokenizer:
    """A stand-in for a tokenizer that was not given: whatever is asked of it is an error that says so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, wanted: str) -> object:
        if wanted.startswith("__"):  # Python's own protocols, which ask whether there is something
            raise AttributeError(wanted)
        raise TokenizerError(
            f"from_gemma({self._name}, ...)",
            "a tokenizer",
            "none",
            "Pass tokenizer=, the folder with the model's tokenizer.json or tokenizer.model.",
        )
