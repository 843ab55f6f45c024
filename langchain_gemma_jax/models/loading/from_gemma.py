"""A model from parameters of the official library: a tree that it loaded, tuned or trained."""

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
    """Convert a model of the official library, with its parameters, to a model of this package.

        model = gm.nn.Gemma3_1B()
        params = gm.ckpts.load_params(...)                      # or what your training made
        served = from_gemma(model, params, tokenizer="./gemma-3-1b-it")

    The parameters are copied, one array at a time. ``params`` stays yours, and later changes to it have no
    effect here. Of a multimodal model only the text tower is taken.

    Args:
        model: the library's module, such as ``gm.nn.Gemma3_1B()``. Only its configuration is read.
        params: its tree, as the library loads and saves it, with or without ``{"params": ...}`` around it.
        dtype: of the matrices on the device: "bfloat16", "float32" or "float16". The tree's own by default,
            but float32 for a float16 one.
        recipe: the memory layout and the products of matrices, and so their dtype. By default the fastest on this
            machine.
        device: the device or placement of the weights. By default the first device of JAX.
        tokenizer: a loaded tokenizer, or the folder of its ``tokenizer.json`` or ``tokenizer.model``.
            Without it the model computes, and raises ``TokenizerError`` as soon as there is text to encode.
        config: the architecture, instead of the one in ``model``.

    Raises:
        InputError: an argument is wrong; among these ``UnsupportedModelError`` for a Gemma 3n, LoRA
            adapters (merge them first) or quantized weights, and ``ConfigError`` for a model that is no Gemma.
        CheckpointError: the tree belongs to another model, or the tokenizer cannot be used.

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
    loaded_tokenizer = _tokenizer(tokenizer, name)
    where = placement_of(device)
    recipe = recipe or choose_recipe(dtype, divided=not where.one_device)
    placed = place(source, naming, config, dtype, recipe.layout, where, storage=recipe.storage)
    return Model(Gemma(config), placed, loaded_tokenizer, recipe, name, placed=where)


def _tokenizer(given: Tokenizer | str | os.PathLike[str] | None, name: str) -> Tokenizer:
    if given is None:
        return cast("Tokenizer", _NoTokenizer(name))
    return given if isinstance(given, Tokenizer) else load_tokenizer(Path(given))


class _NoTokenizer:
    """A placeholder for a missing tokenizer: using any attribute raises an error that says so."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, wanted: str) -> object:
        if wanted.startswith("__"):  # Python's protocols test whether such an attribute exists
            raise AttributeError(wanted)
        raise TokenizerError(
            f"from_gemma({self._name}, ...)",
            "a tokenizer",
            "none",
            "Pass tokenizer=, the folder with the model's tokenizer.json or tokenizer.model.",
        )
