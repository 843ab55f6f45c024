"""A model from a folder or from the Hub: found, checked, and put on the device."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import jax

from langchain_gemma_jax.ancestry import ancestry
from langchain_gemma_jax.errors import CheckpointError, InputError, ModelNotOnHubError, OfflineError
from langchain_gemma_jax.models.architecture import Architecture
from langchain_gemma_jax.models.checkpoint.folder import open_folder
from langchain_gemma_jax.models.checkpoint.links import real_file
from langchain_gemma_jax.models.checkpoint.place import default_dtype, place
from langchain_gemma_jax.models.checkpoint.unchanged import Unchanged
from langchain_gemma_jax.models.configuration.abstract import ITEM_BYTES
from langchain_gemma_jax.models.configuration.model_config import ModelConfig
from langchain_gemma_jax.models.configuration.strict_json import read_object
from langchain_gemma_jax.models.embedded import EMBEDDED, embedded_folder
from langchain_gemma_jax.models.gemma.gemma_architecture import Gemma
from langchain_gemma_jax.models.hub.hub_request import is_model_id
from langchain_gemma_jax.models.model import Model, Params, ReadFrom, leaves
from langchain_gemma_jax.models.placement import Placement, placement_of
from langchain_gemma_jax.models.progress import loading_bar
from langchain_gemma_jax.models.recipes import Recipe, choose_recipe
from langchain_gemma_jax.models.stopping import Stop
from langchain_gemma_jax.models.tokenizer import Tokenizer, load_tokenizer, tokenizer_digest
from langchain_gemma_jax.models.weights import total_bytes
from langchain_gemma_jax.reentry import Inside

GENERATION_DEFAULTS = "generation_config.json"

_loading = Inside("it loaded a model")  # which takes locks, on files too, that a signal handler would wait for


@dataclass(frozen=True)
class LoadPlan:
    """A model before its weights are read."""

    name: str
    architecture: Architecture
    recipe: Recipe
    tokenizer: Tokenizer
    placement: Placement
    files: Unchanged  # what it is read from


@_loading.here()
def load(
    source: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    revision: str | None = None,
    token: str | None = None,
    recipe: Recipe | None = None,
    device: jax.Device | Placement | None = None,
    progress: bool | None = None,
    planned: Callable[[LoadPlan], None] | None = None,
    like: Model | None = None,
    stop: Stop | None = None,
) -> Model:
    """Load a Gemma, ready to run.

        model = load("sprout-m")
        model = load("google/gemma-3-1b-it")
        model = load("./my-tuned-gemma", dtype="float32")

    Args:
        source: an embedded model's name, a folder (Hugging Face safetensors, or Orbax), or a model's id on the
            Hugging Face Hub. A string that names a folder means the folder.
        dtype: of the matrices on the device, "bfloat16", "float32" or "float16". The checkpoint's own by default,
            but float32 for a float16 one: Gemma's activations can pass float16's range. Norm scales are float32 always.
        revision: on the Hub: a branch, tag or commit.
        token: on the Hub, for gated models. By default the one that huggingface_hub finds. A folder needs none.
        recipe: how matrices lie in memory and are multiplied, and so their dtype. By default the fastest
            on this machine.
        device: where the weights go, a device or a placement. By default the first device of JAX.
        progress: whether to draw a progress bar. By default, if standard error is a terminal.
        planned: called as soon as it is known what the model will be, before its weights are read.
        like: the same model, loaded before and closed: only its weights are read again, from a folder.
        stop: how another thread can end it while its files are fetched.

    Raises:
        InputError: an argument is not possible.
        CheckpointError: the files cannot be used. The subclass says why.
        HubError: the model could not be fetched.
        ForkedError: this process was forked from one that had used JAX.
        ReentrantCallError: a signal handler calls this while its thread loads a model.

        Nothing stays on the device after an error.
    """
    ancestry.refuse_forked()
    if like is not None:
        return _load_again(like, Path(source), progress=progress, planned=planned)
    asked = asked_dtype(dtype, recipe)
    folder, name = _find(source, revision=revision, token=token, progress=progress, stop=stop)
    files = Unchanged.now(folder)
    config, tensors, naming = open_folder(folder)
    with tensors:
        dtype = asked or default_dtype(tensors, naming, config)
        # What is small and can be wrong comes before what is large.
        tokenizer, digest = load_tokenizer(folder), tokenizer_digest(folder)
        generation_defaults = _generation_defaults(folder)
        recipe = recipe or choose_recipe(dtype)
        where = placement_of(device)
        if planned is not None:
            planned(LoadPlan(name, Gemma(config), recipe, tokenizer, where, files))
        with loading_bar(name, total_bytes(recipe.abstract(config)), progress=progress) as advance:
            read = partial(place, tensors, naming, config, dtype, recipe.layout, where, advance, recipe.storage)
            params = _placed(read, files)
    known = ReadFrom(files, digest)
    return Model(Gemma(config), params, tokenizer, recipe, name, generation_defaults, where, known)


def _placed(read: Callable[[], Params], files: Unchanged) -> Params:
    """The weights, if the files are now what they were before."""
    params = read()
    try:
        files.check()
    except BaseException:
        for array in leaves(params):
            array.delete()
        raise
    return params


def _load_again(
    like: Model, folder: Path, *, progress: bool | None, planned: Callable[[LoadPlan], None] | None
) -> Model:
    files = Unchanged.now(folder)
    config, tensors, naming = open_folder(folder)
    with tensors:
        if (other := _what_is_other(like, config, files)) is not None:
            advice = "Unload it, and load it anew."
            raise CheckpointError(folder, f"the model {like.name!r} that was loaded before", other, advice)
        recipe, where = like.recipe, like.placement
        if planned is not None:
            planned(LoadPlan(like.name, like.architecture, recipe, like.tokenizer, where, files))
        with loading_bar(like.name, like.nbytes, progress=progress) as advance:
            read = partial(place, tensors, naming, config, recipe.dtype, recipe.layout, where, advance, recipe.storage)
            params = _placed(read, files)
    return replace(like, params=params)


def _what_is_other(like: Model, config: ModelConfig, files: Unchanged) -> str | None:
    """What would not fit to weights that are read from these files. None: all that is kept of a model fits."""
    if config != like.config:
        return "another one"
    before = like.read_from
    if before is None or before.files == files:
        return None
    if _generation_defaults(files.folder) != like.generation_defaults:
        return f"another {GENERATION_DEFAULTS} than its own"
    return None if tokenizer_digest(files.folder) == before.tokenizer else "another tokenizer than its own"


def asked_dtype(dtype: str | None, recipe: Recipe | None) -> str | None:
    """The dtype that a caller asked for, by itself or with a recipe. None: with neither.

    Raises:
        InputError: there is no such dtype, or it is not the recipe's; or the recipe's cache has an impossible one.
    """
    if dtype is not None and dtype not in ITEM_BYTES:
        raise InputError(f"dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {dtype!r}.")
    if recipe is not None and dtype not in {None, recipe.dtype}:
        raise InputError(f"dtype={dtype!r} was asked for, with a recipe for {recipe.dtype}. Leave one of them out.")
    if recipe is not None and recipe.kv_dtype not in ITEM_BYTES:
        raise InputError(f"cache_dtype: expected one of {', '.join(ITEM_BYTES)} or None, found {recipe.cache_dtype!r}.")
    return dtype if recipe is None else recipe.dtype


def _find(
    source: str | os.PathLike[str],
    *,
    revision: str | None,
    token: str | None,
    progress: bool | None,
    stop: Stop | None,
) -> tuple[Path, str]:
    """The folder, fetched if need be, and the model's name."""
    if (own := embedded_folder(source)) is not None:
        source = own
    path = Path(os.path.expanduser(source))  # noqa: PTH111  which never raises, as os.path.exists never does
    if not isinstance(source, str) or (source and os.path.exists(path)):  # noqa: PTH110
        if revision is not None:
            raise InputError(f"revision={revision!r} is for models on the Hub, and {str(path)!r} is a folder.")
        return path, path.resolve().name
    if not is_model_id(source):
        raise InputError(
            f"{source!r} is neither a folder that exists here nor a model's id on the Hugging Face Hub, "
            'which is written "organisation/name", as in "google/gemma-3-1b-it". '
            f"Embedded models are {' and '.join(EMBEDDED)}."
        )
    from langchain_gemma_jax.models.hub.download import download

    try:
        return download(source, revision=revision, token=token, progress=progress, stop=stop), source
    except (ModelNotOnHubError, OfflineError) as error:
        error.add_note(f"If a folder was meant: there is none at {path.absolute()}.")
        raise


def _generation_defaults(folder: Path) -> Mapping[str, object]:
    shown = folder / GENERATION_DEFAULTS
    return read_object(real_file(folder, GENERATION_DEFAULTS), shown) if os.path.lexists(shown) else {}
